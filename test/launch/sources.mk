# test/launch: the installed mpirun. Each script is one test with exit code 0, 1, or 77 (skipped). test/run sets WEFT_TEST_MPIRUN and
# WEFT_TEST_PROBE, the programs under test.
check_PROGRAMS += test/launch/probe/boot_probe
test_launch_probe_boot_probe_SOURCES = test/launch/probe/boot_probe.c
test_launch_probe_boot_probe_LDADD = libweft.a
check_PROGRAMS += test/launch/probe/lock_held
test_launch_probe_lock_held_SOURCES = test/launch/probe/lock_held.c
test_launch_probe_lock_held_LDADD = libweftapi.a libweft.a
