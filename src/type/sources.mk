# src/type: datatypes, packing, reduction operators
libweft_a_SOURCES += \
	src/base/arith.h \
	src/type/type.h src/type/type.c src/type/types.def \
	src/type/type_internal.h src/type/type_create.c src/type/type_f90.c \
	src/type/signature.h src/type/signature.c \
	src/type/layout.h src/type/layout.c \
	src/type/pack.h src/type/pack.c src/type/runs.h src/type/runs.c src/type/wire.h src/type/wire.c \
	src/type/op.h src/type/op.c \
	src/type/kernels.h src/type/kernels.inc \
	src/type/kernels0.c src/type/kernels1.c src/type/kernels2.c src/type/kernels_wide.c
# MPI handles and constructors
libweft_a_SOURCES += \
	src/mpi/type.c src/mpi/type_array.c src/mpi/type_create.c src/mpi/type_envelope.c src/mpi/type_pack.c src/mpi/type_predefined.c \
	src/mpi/type_local.h \
	src/mpi/op.c
