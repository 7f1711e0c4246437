# test/perf: the repeatable parts (budget, bench-check, tables-check) are tests of the installed library. The others (compare, consistency,
# hosts, startup, with limits, shapelimits, futexring, sockets) are run by hand and write docs/performance.md. Each compiles its programs itself.
EXTRA_DIST += test/perf/bench-check test/perf/budget test/perf/budget.c test/perf/budget_fortran.F90 test/perf/compare \
	test/perf/compare_coll.py test/perf/consistency test/perf/corrupt.c \
	test/perf/futexring.c test/perf/hosts test/perf/limits.c test/perf/load test/perf/load.c test/perf/shapelimits.c \
	test/perf/sockets.c test/perf/startup test/perf/startup.c test/perf/threads test/perf/threads.c \
	test/perf/partitioned test/perf/partitioned.c test/perf/tables-check
# A benchmark of internal functions: linked statically, run by hand from the build directory.
check_PROGRAMS += test/perf/regcache
test_perf_regcache_SOURCES = test/perf/regcache.c
test_perf_regcache_LDADD = libweft.a -lm
