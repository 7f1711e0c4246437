# test/launch: mpirun as people meet it. Each script is one test: exit 0, 1, or 77; WEFT_TEST_MPIRUN and WEFT_TEST_PROBE name the
# programs under test.
check_PROGRAMS += test/launch/boot_probe
test_launch_boot_probe_SOURCES = test/launch/boot_probe.c
test_launch_boot_probe_LDADD = libweft.la
