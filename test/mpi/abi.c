/* np: 1 2 : the ABI's sizes, Fortran's types and truth values (set once, agreeing with the datatypes), ints of handles of every kind */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static void expect_value(MPI_Info info, const char *key, const char *value)
{
    char got[64] = "";
    int flag, length = sizeof got;
    OK(MPI_Info_get_string(info, key, &length, got, &flag));
    CHECK(flag == (value != NULL) && (!value || !strcmp(got, value)), "%s is '%s'", key, got);
}

static void sizes(void)
{
    MPI_Info info;
    OK(MPI_Abi_get_info(&info));
    expect_value(info, "mpi_aint_size", "8");
    expect_value(info, "mpi_count_size", "8");
    expect_value(info, "mpi_offset_size", "8");
    OK(MPI_Info_free(&info));
}

static void fortran(void)
{
    MPI_Info info, got;
    OK(MPI_Abi_get_fortran_info(&got));
    CHECK(got == MPI_INFO_NULL); /* not known yet */
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_integer_size", "8"));
    BAD(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI, "MPI_INTEGER");
    OK(MPI_Info_set(info, "mpi_integer_size", "four"));
    BAD(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI, "four");
    OK(MPI_Info_set(info, "mpi_integer_size", " 4 "));
    OK(MPI_Info_set(info, "mpi_double_precision_size", "8"));
    OK(MPI_Info_set(info, "mpi_real8_supported", "maybe"));
    BAD(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI, "maybe");
    OK(MPI_Info_set(info, "mpi_real8_supported", "true"));
    OK(MPI_Info_set(info, "mpi_logical1_supported", "false"));
    OK(MPI_Info_set(info, "other", "1"));
    BAD(MPI_Abi_set_fortran_info(MPI_INFO_NULL), MPI_ERR_INFO, "MPI_INFO_NULL");
    OK(MPI_Abi_set_fortran_info(info));
    BAD(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI, "once");
    OK(MPI_Info_free(&info));
    OK(MPI_Abi_get_fortran_info(&got));
    expect_value(got, "mpi_integer_size", "4");
    expect_value(got, "mpi_double_precision_size", "8");
    expect_value(got, "mpi_real8_supported", "true");
    expect_value(got, "mpi_logical1_supported", "false");
    expect_value(got, "mpi_real_size", NULL);
    expect_value(got, "other", NULL);
    OK(MPI_Info_free(&got));
}

static void booleans(void)
{
    int yes = 77, no = 78, is_set = -1, true_value = -1, false_value = 5;
    OK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set));
    CHECK(is_set == 0);
    BAD(MPI_Abi_set_fortran_booleans(3, &true_value, &false_value), MPI_ERR_ARG, "logical_size is 3");
    BAD(MPI_Abi_set_fortran_booleans(4, NULL, &false_value), MPI_ERR_ARG, "logical_true");
    OK(MPI_Abi_set_fortran_booleans(4, &true_value, &false_value));
    BAD(MPI_Abi_set_fortran_booleans(4, &true_value, &false_value), MPI_ERR_ABI, "once");
    OK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set));
    CHECK(is_set == 1 && yes == -1 && no == 5);
    BAD(MPI_Abi_get_fortran_booleans(8, &yes, &no, &is_set), MPI_ERR_ABI, "4 bytes");
}

/* Null handles and constants keep their values; other handles come back. */
static void handles(void)
{
    CHECK(MPI_Win_toint(MPI_WIN_NULL) == 0x110 && MPI_Win_fromint(0x110) == MPI_WIN_NULL);
    CHECK(MPI_File_toint(MPI_FILE_NULL) == 0x118 && MPI_File_fromint(0x118) == MPI_FILE_NULL);
    CHECK(MPI_Session_toint(MPI_SESSION_NULL) == 0x120 && MPI_Session_fromint(0x120) == MPI_SESSION_NULL);
    CHECK(MPI_Message_toint(MPI_MESSAGE_NO_PROC) == 0x129 && MPI_Message_fromint(0x128) == MPI_MESSAGE_NULL);
    CHECK(MPI_Info_toint(MPI_INFO_ENV) == 0x131 && MPI_Info_fromint(0x130) == MPI_INFO_NULL);
    CHECK(MPI_Errhandler_toint(MPI_ERRORS_ABORT) == 0x142 && MPI_Op_toint(MPI_OP_NULL) == 0x20);
    CHECK(MPI_Win_fromint(1 << 20) == MPI_WIN_NULL && MPI_File_fromint(-1) == MPI_FILE_NULL);
    CHECK(MPI_Session_fromint(1 << 20) == MPI_SESSION_NULL);
    CHECK(MPI_Message_fromint(1 << 20) == MPI_MESSAGE_NULL && MPI_Info_fromint(1 << 20) == MPI_INFO_NULL);
}

int main(int argc, char **argv)
{
    int rank, size;
    sizes(); /* always available */
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    sizes();
    fortran();
    booleans();
    handles();
    OK(MPI_Finalize());
    sizes();
    return 0;
}
