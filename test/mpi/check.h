/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check: shared by the tests of MPI: a check that reports rank, place and values and ends the job, and payloads that identify sender,
 * message and offset. A test that returns 0 from main has passed.
 */
#ifndef TEST_MPI_CHECK_H
#define TEST_MPI_CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_rank = -1;

static inline void check_fail(const char *file, int line, const char *what, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (check_rank < 0) /* another file has called check_start */
        MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    fprintf(stderr, "%s:%d: rank %d: not so: %s  %s\n", file, line, check_rank, what, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) \
            check_fail(__FILE__, __LINE__, #condition, " " __VA_ARGS__); \
    } while (0)
#define OK(call) \
    do { \
        int ok_code = (call); \
        if (ok_code != MPI_SUCCESS) \
            check_fail(__FILE__, __LINE__, #call, " returned error %d", ok_code); \
    } while (0)

static inline void check_start(int *argc, char ***argv, int *rank, int *size)
{
    OK(MPI_Init(argc, argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, size));
    check_rank = *rank;
}

static inline int class_of(int code)
{
    int class_ = -1;
    OK(MPI_Error_class(code, &class_));
    return class_;
}

/* A byte that depends on sender, message and offset. */
static inline unsigned char check_byte(unsigned seed, size_t at)
{
    uint64_t x = (at + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    return (unsigned char)(x >> 37 ^ x >> 11);
}

static inline void check_fill(void *buf, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)buf)[i] = check_byte(seed, i);
}

/* Offset of the first wrong byte; `bytes`: all are right. */
static inline size_t check_wrong(const void *buf, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)buf)[i] != check_byte(seed, i))
            return i;
    return bytes;
}

/* A fast, reproducible random generator. */
static inline uint32_t check_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}

#endif
