# test/perf: what is repeatable (instruction budgets, the check of weft-bench --check) is a test of the installed library; what is
# not (compare, hosts, startup, with limits, futexring, sockets) is run by hand and writes docs/performance.md. All compile their programs
# themselves.
EXTRA_DIST += test/perf/bench-check test/perf/budget test/perf/budget.c test/perf/compare test/perf/corrupt.c \
	test/perf/futexring.c test/perf/hosts test/perf/limits.c test/perf/load test/perf/load.c test/perf/sockets.c test/perf/startup test/perf/startup.c test/perf/threads test/perf/threads.c
# A benchmark of inner rooms: linked statically, run by hand from the build directory.
check_PROGRAMS += test/perf/regcache
test_perf_regcache_SOURCES = test/perf/regcache.c
test_perf_regcache_LDADD = libweft.la -lm
