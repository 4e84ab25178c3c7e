"""A library is tried in a process of its own, which it may harm as it likes."""

import os
import sys
from pathlib import Path

import pytest

from ggarray.backends.blas.library import UnusableLibraryError
from ggarray.backends.blas.probe import Report, try_library

from .fake_blas import EVERYTHING, ILP64, MARKS, SPELLINGS, needing

CRASH = "*(volatile int *)8=0"


def is_refused(path, *reasons):
    """Check that a library is refused, and return how the message goes on after its path."""
    with pytest.raises(UnusableLibraryError) as caught:
        try_library(path)
    message = str(caught.value)
    for reason in (str(path), *reasons):
        assert reason in message
    return message.partition(str(path))[2]


def check_report(path, **facts):
    report = try_library(path)
    assert type(report) is Report
    assert report.gflops > 0
    for name, expected in facts.items():
        assert getattr(report, name) == expected


# -- what is reported ------------------------------------------------------------------------------


def test_a_plain_library(fake):
    check_report(
        fake(),
        vendor="reference",
        version="",
        core="",
        ilp64=False,
        threading="none",
        extras=[],
        loses_nan=False,
    )


def test_a_library_of_a_vendor(fake):
    path = fake(*EVERYTHING, *ILP64, *SPELLINGS["scipy_ 64_"], marks=MARKS["openblas"])
    check_report(
        path,
        vendor="openblas",
        version="0.3.99",
        core="Penryn",
        ilp64=True,
        threading="pthreads",
        extras=["strided batch"],
        loses_nan=False,
    )


def test_a_library_that_loses_nan(fake):
    check_report(fake("-DIS_LOST_BY_GEMM(x,y)=((x)==0)"), loses_nan=True)


def test_libraries_may_lie_beside_those_that_need_them(compile_blas, machine):
    other = compile_blas(machine / "libneeded.so.2", "-Wl,-soname,libneeded.so.2", source="int x;")
    check_report(compile_blas(machine / "sub" / "lib.so", *needing(other)), vendor="reference")


@pytest.mark.parametrize("name", ["with space.so", "ünïcode\n.so", os.fsdecode(b"not\xffutf8.so")])
def test_any_file_name(compile_blas, machine, name):
    check_report(compile_blas(machine / name), vendor="reference")


# -- what it does to the process -------------------------------------------------------------------

FAULTS = {
    "crashes when it is opened": (
        f"-DWHEN_OPENED={CRASH}",
        "ended the process that tried it with SIGSEGV",
    ),
    "aborts when it is opened": (
        "-DWHEN_OPENED=abort()",
        "ended the process that tried it with SIGABRT",
    ),
    "crashes in a product": (f"-DIN_GEMM={CRASH}", "ended the process that tried it with SIGSEGV"),
    "aborts in a product": ("-DIN_GEMM=abort()", "ended the process that tried it with SIGABRT"),
    "kills the process": ("-DIN_GEMM=kill(getpid(),SIGRTMIN+1)", "ended"),
    "exits in silence": ("-DWHEN_OPENED=exit(0)", "exit code 0", "said: nothing"),
    "exits in a product": ("-DIN_GEMM=_exit(4)", "exit code 4"),
    "exits with a message": (
        '-DWHEN_OPENED=fputs("no licence",stderr),exit(3)',
        "exit code 3",
        "no licence",
    ),
    "computes wrongly": ("-DGEMM_FACTOR=2", "computes wrong products"),
    "has no routine": ("-DWITHOUT_ZGEMV", "lacks a cblas_?gemv"),
    "is no BLAS": ("-DWITHOUT_GEMM", "has no cblas_sgemm"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fake, fault):
    option, *reasons = FAULTS[fault]
    is_refused(fake(option), *reasons)


@pytest.mark.parametrize("said", ["3", "null", "[]", "[1, 2]", '"text"', "{}", "true"])
def test_what_a_library_says_before_it_exits_is_no_report(fake, said):
    quoted = said.replace('"', r"\"")
    is_refused(fake(f'-DWHEN_OPENED=puts("{quoted}"),exit(0)'), "exit code 0", said)


def test_of_a_long_message_the_end_is_shown(fake):
    path = fake('-DWHEN_OPENED=for(int i=0;i<9999;i++)fprintf(stderr,"%d,",i);exit(1)')
    message = is_refused(path, ",9998,")
    assert "1000," not in message
    assert len(message) < 700


@pytest.mark.parametrize("when", ["WHEN_OPENED", "IN_GEMM"])
def test_libraries_that_hang(fake, monkeypatch, when):
    monkeypatch.setattr("ggarray.backends.blas.probe._SECONDS", 1)
    is_refused(fake(f"-D{when}=for(;;)pause()"), "did not answer within 1 seconds")


@pytest.mark.parametrize(
    "noise",
    [
        'puts("hello")',
        'write(1,"[1]\\n\\377",5)',
        'write(1,"no newline",10)',
        'fputs("warning",stderr)',
        'for(int i=0;i<99999;i++)puts("much"),fputs("much",stderr)',
    ],
)
@pytest.mark.parametrize("when", ["WHEN_OPENED", "IN_GEMM"])
def test_libraries_that_talk(fake, capfd, noise, when):
    once = f"static int said;if(!said++){{{noise};}}"
    check_report(fake(f"-D{when}={once}"), vendor="reference")
    assert capfd.readouterr() == ("", "")


def test_libraries_that_crash_when_they_are_closed(fake):
    marks = f"__attribute__((destructor)) static void end(void) {{ {CRASH}; }}"
    check_report(fake("-DWHEN_OPENED=atexit(abort)", marks=marks), vendor="reference")


def test_libraries_that_read(fake):
    check_report(fake("-DWHEN_OPENED=if(getchar()!=EOF)abort()"), vendor="reference")


def test_this_process_goes_on(fake):
    """Were it opened here, the test would end."""
    path = fake(f"-DWHEN_OPENED={CRASH}")
    is_refused(path, "SIGSEGV")
    assert str(path) not in Path("/proc/self/maps").read_text(errors="surrogateescape")


@pytest.mark.parametrize("fault", ["", "exit(1)"])
def test_a_library_is_tried_once(fake, machine, fault):
    trials = machine / "trials"
    opened = f'FILE*f=fopen("{trials}","a");fputs("x",f);fclose(f);{fault}'
    path = fake(f"-DWHEN_OPENED={opened}")
    for _ in range(3):
        if fault:
            is_refused(path, "exit code 1")
        else:
            assert try_library(path) is try_library(path)
    assert trials.read_text() == "x"


def test_a_library_that_is_mended_can_be_used(fake, compile_blas):
    path = fake("-DGEMM_FACTOR=2")
    is_refused(path, "wrong")
    compile_blas(path)
    check_report(path, vendor="reference")
    compile_blas(path, "-DGEMM_FACTOR=2")
    is_refused(path, "wrong")


def test_no_library_at_all(machine):
    is_refused(machine / "lib.so", "No such file")
    (machine / "lib.so").write_text("no library")
    is_refused(machine / "lib.so", "file too short")
    is_refused(machine / "lib.so" / "lib.so", "cannot open")
    is_refused(machine / ("long" * 100), "File name too long")


def test_modules_of_the_current_directory_are_not_imported(fake, machine, monkeypatch):
    for name in ("json", "signal", "types", "ggarray", "cffi", "subprocess"):
        (machine / f"{name}.py").write_text("raise SystemExit(77)")
    monkeypatch.chdir(machine)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    check_report(fake(), vendor="reference")


def test_the_environment_is_that_of_this_process(fake, monkeypatch):
    option = '-DWHEN_OPENED=if(!getenv("FAKE_BLAS_LICENCE"))exit(2)'
    is_refused(fake(option), "exit code 2")
    monkeypatch.setenv("FAKE_BLAS_LICENCE", "1")
    check_report(fake(option), vendor="reference")
