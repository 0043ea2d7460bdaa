"""Files in legacy encodings are read as what they are, or not at all: a wrong guess writes wrong letters."""

from __future__ import annotations

import pytest

from marvin_core.kit.files.encodings import binary_kind, codec_of

GERMAN = "Übergröße für Mädchen\nÄpfel und Öl\nschöne Grüße\n"
FINNISH = "Hyvää päivää, missä on järvi? Se on tämän mäen päällä.\n"
FRENCH = "Déjà vu, garçon naïf à l'école.\nLes élèves préfèrent être dehors.\n"
SPANISH = "# Configuración de la aplicación\ncontraseña = x\n"
POLISH = "Użytkownik może zmienić hasło w każdej chwili, jeśli chce.\nŁódź i Kraków są dużymi miastami.\n"
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy.\nUživatel může změnit heslo.\n"
RUSSIAN = "Это русский текст в файле.\nМосква большой город, и я там живу уже давно.\n"
UKRAINIAN = "Це український текст. Київ є столицею України, і я там живу.\n"
GREEK = "Αυτό είναι ένα κείμενο\nκαλημέρα κόσμε, τι κάνεις σήμερα\n"
JAPANESE = "これは日本語の文章です。\n東京は大きな町です。私はそこに住んでいます。\nカタカナもあります。\n"
COMMENTS = "int main() { // メイン関数です。ここから始まります\n  return 0; // 終了します\n}\n"
CHINESE = "这是一个中文文件。\n北京是一个大城市，我住在那里。\n今天天气很好，我们去公园吧。\n"
TAIWANESE = "這是一個中文文件。\n臺北是一個大城市，我住在那裡。\n今天天氣很好，我們去公園吧。\n"


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        *((text, ("cp1252", "latin-1", "iso8859_15")) for text in (GERMAN, FINNISH, FRENCH, SPANISH)),
        (POLISH, ("cp1250", "iso8859_2")),
        (CZECH, ("cp1250", "iso8859_2")),
        (RUSSIAN, ("cp1251", "koi8_r", "cp866")),
        (UKRAINIAN, ("cp1251", "koi8_u")),
        (GREEK, ("cp1253",)),
        (JAPANESE, ("cp932", "euc_jp")),
        (COMMENTS, ("cp932", "euc_jp")),
        (CHINESE, ("gb18030",)),
        (TAIWANESE, ("big5",)),
    ],
)  # fmt: skip
def test_a_text_is_read_as_it_was_written(text: str, encodings: tuple[str, ...]) -> None:
    for encoding in encodings:
        data = text.encode(encoding)
        codec = codec_of(data)
        assert codec is not None, encoding
        assert codec.decode(data) == text, (encoding, codec.name)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(GERMAN, "cp437"), (GERMAN, "cp850"), (SPANISH, "cp850"), (FRENCH, "cp850"), ("// Größe\n", "mac_roman")],
)
def test_letters_of_dos_are_not_taken_for_signs_of_windows(text: str, encoding: str) -> None:
    """`Gr”áe` is no word."""
    assert codec_of(text.encode(encoding)) is None


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        ("name = value\n".encode("utf-16-le"), "iconv -f UTF-16LE"),
        ("größe = 3\r\n".encode("utf-16-be"), "iconv -f UTF-16BE"),
        ("name = value\n".encode("utf-32"), "iconv -f UTF-32"),
        (b"\x7f\0\1\2\0\0\3\0", ""),
        (bytes(100), ""),
    ],
)
def test_what_may_be_text_in_wide_characters_is_named(data: bytes, hint: str) -> None:
    """It is not certain: a table of small numbers has the same bytes."""
    kind = binary_kind(data)
    assert kind.startswith("a binary file")
    assert ("iconv" in kind) == bool(hint)
    assert hint in kind
