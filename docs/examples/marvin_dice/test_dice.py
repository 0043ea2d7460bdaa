from marvin_dice import roll_dice


def test_each_die_shows_a_face(marvin_tools):
    outcome = marvin_tools.call(roll_dice, sides=4, count=3)
    faces = [int(face) for face in outcome.text.split(", ")]
    assert len(faces) == 3
    assert all(1 <= face <= 4 for face in faces)
    assert outcome.progress == ("The dice roll.",)


def test_a_mistake_is_explained_to_the_model(marvin_tools):
    outcome = marvin_tools.call_raw(roll_dice, '{"sides": 1, "cuont": 2}')
    assert outcome.is_error
    assert "sides: must be" in outcome.text
    assert "count" in outcome.text


def test_too_many_dice_are_refused(marvin_tools):
    assert "at most 100" in marvin_tools.call(roll_dice, count=101).text
