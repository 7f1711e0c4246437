# test/launch: the installed mpirun. Each script is one test with exit code 0, 1, or 77 (skipped). test/run sets WEFT_TEST_MPIRUN and
# WEFT_TEST_PROBE, the programs under test.
check_PROGRAMS += test/launch/probe/boot_probe
test_launch_probe_boot_probe_SOURCES = test/launch/probe/boot_probe.c
test_launch_probe_boot_probe_LDADD = libweft.a
check_PROGRAMS += test/launch/probe/lock_held
test_launch_probe_lock_held_SOURCES = test/launch/probe/lock_held.c src/api/checks.c src/api/checks.h
nodist_test_launch_probe_lock_held_SOURCES = $(gen_entries)
test_launch_probe_lock_held_CFLAGS = $(AM_CFLAGS)
test_launch_probe_lock_held_LDADD = libweft.a
