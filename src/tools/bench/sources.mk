# weft-bench: uses the public MPI API only, so that `mpicc src/tools/bench/*.c` builds it with any MPI
bin_PROGRAMS += weft-bench
weft_bench_LDADD = libmpi_abi.la
weft_bench_LDFLAGS = $(AM_LDFLAGS)
weft_bench_SOURCES = \
	src/tools/bench/main.c \
	src/tools/bench/bench.h \
	src/tools/bench/buffer.c src/tools/bench/buffer.h \
	src/tools/bench/check.c src/tools/bench/check.h \
	src/tools/bench/coll.c src/tools/bench/coll.h \
	src/tools/bench/coll_check.c \
	src/tools/bench/exchange.c \
	src/tools/bench/match.c \
	src/tools/bench/notify.c \
	src/tools/bench/overlap.c \
	src/tools/bench/options.c src/tools/bench/options.h \
	src/tools/bench/pair.c \
	src/tools/bench/report.c src/tools/bench/report.h \
	src/tools/bench/rma.c \
	src/tools/bench/timing.c src/tools/bench/timing.h \
	src/tools/bench/vector.c
