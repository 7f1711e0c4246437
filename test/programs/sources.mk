# test/programs: contrib/programs for some of its programs, small; run by test/run
EXTRA_DIST += test/programs/fftw3 test/programs/hpcc
