"""Agents that Markdown files define: where they are found, what their heads may say, and what a task takes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import AgentTask
from marvin_core.api.config import Config
from marvin_core.api.errors import ToolError
from marvin_core.config.load import load
from marvin_core.engine.agents.definitions import AgentDefinition, as_defined, find_definitions, is_defined
from marvin_core.guard.trust import TrustStore
from tests.support.examples import examples

OWL = "---\nname: owl\ndescription: Sees at night.\ntools: [read_file, code_grep]\nmodel: low\n---\nYou are an owl.\n"


class Places:
    """A project, the folder of a user, and packs."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "project"
        self.root.mkdir(parents=True)
        home = base / "home"
        self.config: Config = load((), {"HOME": str(home), "MARVIN_HOME": str(home / "marvin")}, cwd=self.root)[0]
        self.packs: dict[str, str] = {}

    def write(self, folder: Path, name: str, text: str | bytes) -> Path:
        """A file in a folder `agents`."""
        path = folder / "agents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    @property
    def user(self) -> Path:
        """The folder of the user."""
        return self.config.config_folder

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.root / ".marvin"

    def trust(self) -> None:
        """Trust the project as it is."""
        store = TrustStore(self.config)
        store.trust(store.look(self.root))

    def find(self) -> list[AgentDefinition]:
        """All agents."""
        return find_definitions(self.config, self.root, self.packs)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Places without any agent."""
    return Places(tmp_path)


def test_what_a_head_says(places: Places) -> None:
    """Name, description, tools as a list or as a text, model; without a name that of the file."""
    places.write(places.user, "some.md", OWL)
    places.write(places.user, "wren.md", "---\ntools: read_file , tree,\nread-only: true\n---\nSmall.")
    owl, wren = places.find()
    assert owl.replace(file="") == AgentDefinition(
        name="owl",
        origin="user",
        file="",
        description="Sees at night.",
        tools="read_file,code_grep",
        model="low",
        instructions="You are an owl.",
    )
    assert (wren.name, wren.tools, wren.model, wren.read_only) == ("wren", "read_file,tree", "auto", True)


def test_the_nearest_counts(places: Places) -> None:
    """Project before user before pack; the others are listed with that as their problem."""
    places.packs = {"birds": str(places.base / "birds")}
    for folder in (Path(places.packs["birds"]), places.user, places.project):
        places.write(folder, "owl.md", OWL)
    places.trust()
    found = places.find()
    assert [one.origin for one in found] == ["project", "user", "birds"]
    assert [bool(one.problem) for one in found] == [False, True, True]
    assert found[0].file in found[1].problem


def test_those_of_a_project_need_trust(places: Places) -> None:
    """Nothing of them is read before, nor once they have changed; the user's own count meanwhile."""
    places.write(places.project, "owl.md", OWL)
    places.write(places.user, "owl.md", OWL)
    project, user = places.find()
    assert "not trusted" in project.problem
    assert (project.instructions, user.problem) == ("", "")
    places.trust()
    assert places.find()[0].problem == ""
    places.write(places.project, "owl.md", OWL.replace("owl.", "eagle."))
    assert "has changed since" in places.find()[0].problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("You are an owl.", "no front matter"),
        ("---\nname: owl\n", "no front matter"),
        ("---\nname: owl\n---\n \n", "no instructions"),
        ("---\nname: Owl Of The Night\n---\nx", "lower-case letters"),
        ("---\nname: opus\n---\nx", "reserved name"),
        ("---\nname: build\n---\nx", "reserved name"),
        ("---\nname: [owl]\n---\nx", "name is not text"),
        ("---\ntools: {a: b}\n---\nx", "tools is not text"),
        ("---\nread-only: maybe\n---\nx", "true or false"),
        ("---\ndescription: a: b\n---\nx", "quotes"),
        ("---\n- owl\n---\nx", "keys"),
        (b"---\nname: \xff\n---\nx", "UTF-8"),
        (b"---\nname: owl\n---\n" + b"x" * 200_000, "100,000 bytes"),
        ("---\n" + "[" * 5_000 + "\n---\nx", ""),
    ],
)
def test_files_that_define_no_agent(places: Places, text: str | bytes, problem: str) -> None:
    """Each says why in one line, and none hides the others."""
    places.write(places.user, "owl.md", text)
    places.write(places.user, "wren.md", "---\n---\nx")
    broken, whole = places.find()
    assert problem in broken.problem
    assert broken.problem
    assert "\n" not in broken.problem
    assert (whole.name, whole.problem) == ("wren", "")


def test_links_pipes_and_folders_are_no_agents(places: Places, tmp_path: Path) -> None:
    """Nothing is read through a link, and nothing is waited for."""
    secret = tmp_path / "secret.md"
    secret.write_text(OWL)
    folder = places.user / "agents"
    folder.mkdir(parents=True)
    (folder / "a.md").symlink_to(secret)
    os.mkfifo(folder / "b.md")
    (folder / "c.md").mkdir()
    assert all(one.problem and not one.instructions for one in places.find())
    (places.root / ".marvin").mkdir()
    (places.root / ".marvin/agents").symlink_to(folder)
    assert [one.origin for one in places.find()] == ["user"] * 3


@examples(50)
@given(st.text(max_size=300), st.text(max_size=100))
def test_any_text_is_an_agent_or_has_a_problem(tmp_path_factory: pytest.TempPathFactory, head: str, body: str) -> None:
    """Whatever stands in a file."""
    places = Places(tmp_path_factory.mktemp("agents"))
    places.write(places.user, "x.md", f"---\n{head}\n---\n{body}".encode("utf-8", "surrogatepass"))
    (found,) = places.find()
    assert bool(found.problem) != bool(found.instructions)


def test_what_a_task_takes_of_its_agent() -> None:
    """Named as its kind or as its model; what the task says itself counts more, but never makes a reader write."""
    owl = AgentDefinition(
        name="owl", origin="user", file="f", tools="read_file", model="low", read_only=True, instructions="Owl."
    )
    by_model = as_defined(AgentTask(prompt="x", model="owl"), [owl])
    assert (by_model.kind, by_model.model, by_model.tools) == ("owl", "low", "read_file")
    assert (by_model.read_only, by_model.instructions) == (True, "Owl.")
    by_kind = as_defined(AgentTask(prompt="x", kind="owl", model="opus", tools="tree", instructions="Hoo."), [owl])
    assert (by_kind.model, by_kind.tools, by_kind.instructions) == ("opus", "tree", "Owl.\n\nHoo.")
    plain = AgentTask(prompt="x", model="some-model")
    assert as_defined(plain, [owl]) == plain
    assert not any(is_defined(AgentTask(prompt="x", model=name)) for name in ("auto", "low", "opus", "plan"))


def test_agents_that_there_are_not() -> None:
    """The error names those that there are, or what is wrong with the file."""
    owl = AgentDefinition(name="owl", origin="user", file="/f", instructions="Owl.")
    with pytest.raises(ToolError, match=r"Unknown agent 'owll'.*owl"):
        as_defined(AgentTask(prompt="x", kind="owll"), [owl])
    with pytest.raises(ToolError, match=r"owl cannot be used: it is broken \(/f\)"):
        as_defined(AgentTask(prompt="x", model="owl"), [owl.replace(problem="it is broken")])


def test_the_example_of_the_how_to_and_the_agent_of_the_coding_pack(places: Places) -> None:
    """Both can be used as they are."""
    root = Path(__file__).parents[4]
    page = (root / "docs/how-to/define-agents.md").read_text(encoding="utf-8")
    places.write(places.user, "a.md", page.partition("```markdown\n")[2].partition("```")[0])
    places.packs = {"coding": str(root / "marvin-tools-coding/src/marvin_tools_coding")}
    found = {one.name: one for one in places.find()}
    assert [one.problem for one in found.values()] == ["", ""]
    assert all(one.read_only and one.description and one.tools for one in found.values())
    assert (found["reviewer"].model, found["search"].model) == ("opus", "low")
