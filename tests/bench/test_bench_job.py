"""What a job may look like."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.bench import Job, read_jobs
from longpole.bench.run.job import parse_argv


def test_a_string_is_split_as_a_shell_would():
    assert parse_argv("./prof 'a b' --x=1") == ("./prof", "a b", "--x=1")


@pytest.mark.parametrize(
    "command",
    [
        *("a | b", "a; b", "a && b", "a > f", "a < f", "(a)", "a &"),
        *("FOO=1 a", "a $HOME", 'a "$HOME"', "a `b`", 'a "`b`"', "a *", "a b?", "a ~/b", "a\nb"),
        *("a # b", "a --b=${c}", "a '1' $2", r'a "\$b"'),
    ],
)
def test_what_needs_a_shell_is_refused(command):
    with pytest.raises(ValueError, match="needs a shell"):
        parse_argv(command)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("a '$HOME' '*' '`b`' '~' '#'", ("a", "$HOME", "*", "`b`", "~", "#")),
        (r"a \$HOME \* \~ \#", ("a", "$HOME", "*", "~", "#")),
        ("a b=1 --shape=[1,2] x~ x#1 {}", ("a", "b=1", "--shape=[1,2]", "x~", "x#1", "{}")),
        ("./a 'print(1)'\n", ("./a", "print(1)")),
    ],
)
def test_what_a_shell_leaves_as_it_is_needs_none(command, argv):
    assert parse_argv(command) == argv


@given(st.text(st.sampled_from("ab =$*?~#`'\"\\\n-:"), max_size=10))
@settings(max_examples=200)
def test_a_command_is_split_as_a_shell_would_or_refused(tmp_path_factory, text):
    command = f"prog {text}"
    try:
        argv = parse_argv(command)
    except ValueError:
        return
    script = f'prog() {{ printf "%s\\0" "$@" ""; }}; {command}'
    shell = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=tmp_path_factory.getbasetemp(),
        capture_output=True,
        check=True,
    )
    assert argv == ("prog", *shell.stdout.decode().split("\0")[:-2])


@pytest.mark.parametrize("command", ["", [], [""], ["a\0b"], "a 'b"])
def test_what_is_no_command_is_refused(command):
    with pytest.raises(ValueError, match=r"empty|NUL|quotation"):
        parse_argv(command)


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A": "x\0y"}])
def test_what_is_no_variable_is_refused(env):
    with pytest.raises(ValueError, match="cannot be a variable"):
        Job(["a"], env=env)


def test_operators_in_a_list_are_arguments():
    assert parse_argv(["echo", ";", "|"]) == ("echo", ";", "|")


def test_a_job_is_known_by_its_command_unless_it_has_a_key():
    assert Job("./prof 'a b'").key == "./prof 'a b'"
    assert Job(["./prof"], key="gemm").key == "gemm"


def test_a_job_survives_its_own_writing():
    job = Job(["./prof", "1"], key="k", tags={"m": 1}, timeout_s=2.0, env={"A": "b"}, format="none")
    (again,) = read_jobs([__import__("json").dumps(job.to_dict())])
    assert again == job
    assert again.digest() == job.digest()


def test_what_decides_the_run_decides_the_digest():
    job = Job(["a"])
    assert job.digest() == Job(["a"], key="other").digest()
    assert job.digest() != Job(["a"], env={"A": "1"}).digest()


def test_lines_are_jobs_objects_lists_or_commands():
    lines = ['{"argv": ["a"], "id": "x"}', "", "# no job", '["b", "c"]', '"d e"']
    assert [(job.key, job.argv) for job in read_jobs(lines)] == [
        ("x", ("a",)),
        ("b c", ("b", "c")),
        ("d e", ("d", "e")),
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: "),
        ("{}", 'line 2: a job is an object with "argv"'),
        ('{"argv": ["a"], "timout": 1}', "line 2: unknown field 'timout'"),
        ('{"argv": {"a": 1}}', "line 2: 'argv' must be a list of words or a command"),
        ('{"argv": ["a", {}]}', "line 2: 'argv' must be a list of words or a command"),
        ('{"argv": ["a"], "timeout_s": "x"}', "line 2: 'timeout_s' must be a number"),
        ('{"argv": ["a"], "timeout_s": true}', "line 2: 'timeout_s' must be a number"),
        ('{"argv": ["a"], "timeout_s": NaN}', "line 2: 'timeout_s' must be above 0"),
        ('{"argv": ["a"], "timeout_s": 1e300}', "line 2: 'timeout_s' must be above 0"),
        ('{"argv": ["a"], "env": {"A": 1}}', "line 2: 'env' must be an object of strings"),
        ('{"argv": ["a"], "env": ["A"]}', "line 2: 'env' must be an object of strings"),
        ('{"argv": ["a"], "tags": "x"}', "line 2: 'tags' must be an object"),
        ('{"argv": ["a"], "key": 5}', "line 2: 'key' must be a string"),
        ('{"argv": ["a"], "format": null}', "line 2: 'format' must be a string"),
        ('{"argv": ["a"], "folder": 5}', "line 2: 'folder' must be a string"),
    ],
)
def test_a_line_that_is_no_job_is_named(line, complaint):
    with pytest.raises(ValueError, match=complaint):
        list(read_jobs(['["a"]', line]))
