//! Fixtures of pytest and the parameters that take them.

use super::fixture::check_references;

#[test]
fn parameters_that_take_a_fixture_and_their_uses_refer_to_it() {
    let conftest = "import pytest\n\n\n@pytest.fixture\ndef message():\n    return 1\n\n\n\
                    @pytest.fixture()\ndef sent(message):\n    return message\n";
    let unit = "import pytest\n\n\ndef test_a(message):\n    pass\n\n\ndef helper(message):\n    pass\n\n\n\
                @pytest.mark.parametrize('message', [1])\ndef test_b(message):\n    pass\n\n\n\
                class TestC:\n    def test_c(self, message):\n        pass\n\n\n\
                class TestD:\n    @pytest.fixture\n    def message(self):\n        return 2\n\n    \
                def test_d(self, message):\n        pass\n";
    let deep =
        "import pytest\n\n\n@pytest.fixture\ndef message(message):\n    return message + 1\n";
    let below = "def test_e(message):\n    pass\n";
    let files = [
        ("tests/conftest.py", conftest),
        ("tests/test_unit.py", unit),
        ("tests/deep/conftest.py", deep),
        ("tests/deep/test_below.py", below),
        ("other/test_other.py", below),
        (
            "plugin.py",
            "from pytest import fixture\n\n\n@fixture\ndef box():\n    return 1\n",
        ),
        ("other/test_box.py", "def test_f(box):\n    pass\n"),
        (
            "other/test_own.py",
            "import pytest\n\n\n@pytest.fixture(name='jar')\ndef box():\n    pass\n\n\n\
             def test_g(box, jar):\n    pass\n",
        ),
        (
            "other/test_import.py",
            "from plugin import box\n\n\ndef test_h(box):\n    pass\n",
        ),
    ];
    check_references(
        &files,
        "tests/conftest.py::message",
        &[
            "tests/conftest.py:5:4",
            "tests/conftest.py:10:9",
            "tests/conftest.py:11:11",
            "tests/deep/conftest.py:5:12",
            "tests/deep/conftest.py:6:11",
            "tests/test_unit.py:4:11",
            "tests/test_unit.py:13:11 possible",
            "tests/test_unit.py:18:21",
        ],
    );
    check_references(
        &files,
        "tests/deep/conftest.py::message",
        &[
            "tests/deep/conftest.py:5:4",
            "tests/deep/test_below.py:1:11",
        ],
    );
    check_references(
        &files,
        "tests/test_unit.py::TestD.message",
        &["tests/test_unit.py:24:8", "tests/test_unit.py:27:21"],
    );
    check_references(
        &files,
        "plugin.py::box",
        &[
            "other/test_box.py:1:11 possible",
            "other/test_import.py:1:19",
            "other/test_import.py:4:11",
            "plugin.py:5:4",
        ],
    );
}
