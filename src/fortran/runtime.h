/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: what the translations from Fortran to C need (MPI 5.0 chapter 19): sentinels, handles, logicals, texts, arrays of them.
 * Included by the generated src/fortran/entries-*.c. Default INTEGER and LOGICAL have 4 bytes. Any thread; no state but the truth values,
 * which are set before the first use and never changed.
 * Invariant: only functions of the standard ABI and of base/language.h are called.
 */
#ifndef WEFT_FORTRAN_RUNTIME_H
#define WEFT_FORTRAN_RUNTIME_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/language.h"
#include "base/macros.h"

#define WEFT_F_ENTRY __attribute__((visibility("default")))
/* Another name of a translation: the specific names of MPI 5.0 19.1.5 whose calling conventions agree. */
#define WEFT_F_ALIAS_OF(name, of) WEFT_F_ALIAS(name, of) /* of names that are macros */
#define WEFT_F_ALIAS(name, of) extern __typeof__(of) name __attribute__((alias(#of), visibility("default")))

#define WEFT_F_APART __attribute__((noinline, noclone)) /* not rare enough to be cold */
#define WEFT_F_COLD __attribute__((cold, noinline))

#define WEFT_F_FEW 16    /* arrays up to this length are translated on the stack */
#define WEFT_F_TEXT 256  /* bytes of a text on the stack, with its NUL */

/* A procedure of the program, of any type. */
typedef void weft_f_function(void);

/* The COMMON block weft_sentinels of all three interfaces: variables that are known by their address. Never read nor written. */
typedef struct __attribute__((packed)) weft_f_sentinels {
    int bottom, in_place, buffer_automatic, unweighted, weights_empty, errcodes_ignore, status_ignore[8], statuses_ignore[8];
    char argv_null, argvs_null;
} weft_f_sentinels;
extern WEFT_F_ENTRY weft_f_sentinels weft_sentinels_;

/* The value of the sentinel at this offset in C. */
void *weft_f_sentinel(size_t offset) __attribute__((cold));

static inline bool weft_f_is_sentinel(const void *given)
{
    return (uintptr_t)given - (uintptr_t)&weft_sentinels_ < sizeof weft_sentinels_;
}

/* A buffer, status or array: its address, or the value of the sentinel that it is. */
static inline void *weft_f_buffer(const void *given)
{
    return weft_unlikely(weft_f_is_sentinel(given)) ? weft_f_sentinel((uintptr_t)given - (uintptr_t)&weft_sentinels_) : (void *)given;
}

/* As weft_f_buffer, of one status: MPI_STATUS_IGNORE is common. */
static inline MPI_Status *weft_f_status(void *given)
{
    return given == weft_sentinels_.status_ignore ? MPI_STATUS_IGNORE : given;
}

/* Are these one function of C? The compiler would assume that names declared apart are not. */
static inline bool weft_f_is_same(weft_f_function *one, weft_f_function *other)
{
    __asm__("" : "+r"(one));
    return one == other;
}

static inline void weft_f_end(int *ierror, int rc)
{
    if (ierror)
        *ierror = rc;
}

/* Handles: constants have the same value in both languages, others go through MPI_X_fromint and toint. */
#define WEFT_F_CONSTANTS 4096
#define WEFT_F_HANDLE(name, type, ints) \
    static inline type weft_f_##name(int number) \
    { \
        return weft_likely((unsigned)number < WEFT_F_CONSTANTS) ? (type)(uintptr_t)(unsigned)number : PMPI_##ints##_fromint(number); \
    } \
    static inline int weft_f_##name##_out(type handle) \
    { \
        return (uintptr_t)handle < WEFT_F_CONSTANTS ? (int)(uintptr_t)handle : PMPI_##ints##_toint(handle); \
    }
WEFT_F_HANDLE(comm, MPI_Comm, Comm)
WEFT_F_HANDLE(type, MPI_Datatype, Type)
WEFT_F_HANDLE(op, MPI_Op, Op)
WEFT_F_HANDLE(errhandler, MPI_Errhandler, Errhandler)
WEFT_F_HANDLE(group, MPI_Group, Group)
WEFT_F_HANDLE(info, MPI_Info, Info)
WEFT_F_HANDLE(message, MPI_Message, Message)
WEFT_F_HANDLE(session, MPI_Session, Session)
WEFT_F_HANDLE(win, MPI_Win, Win)
WEFT_F_HANDLE(file, MPI_File, File)
#undef WEFT_F_HANDLE

/* Requests: the number of a send that was done at once is known, others are looked up; a valid handle's number is read. */
static inline MPI_Request weft_f_request(int number)
{
    if (weft_likely(number == WEFT_LANGUAGE_DONE))
        return weft_language_done;
    return (unsigned)number < WEFT_F_CONSTANTS ? (MPI_Request)(uintptr_t)(unsigned)number : PMPI_Request_fromint(number);
}
static inline int weft_f_request_out(MPI_Request handle)
{
    return (uintptr_t)handle < WEFT_F_CONSTANTS ? (int)(uintptr_t)handle : ((const weft_language_request *)(const void *)handle)->number;
}

/* Arrays of handles for C: in `few` if they fit, else allocated; NULL: no memory (also recorded for weft_f_no_memory). new: filled with
 * 0, which is no handle. out: writes those that C has set back and frees; free only frees. */
MPI_Datatype *weft_f_types_in(const int *given, int count, MPI_Datatype few[WEFT_F_FEW]);
MPI_Datatype *weft_f_types_new(const int *given, int count, MPI_Datatype few[WEFT_F_FEW]);
void weft_f_types_out(int *given, int count, MPI_Datatype *made, MPI_Datatype few[WEFT_F_FEW]);
void weft_f_types_free(const int *given, int count, MPI_Datatype *made, MPI_Datatype few[WEFT_F_FEW]);
MPI_Request *weft_f_requests_in(const int *given, int count, MPI_Request few[WEFT_F_FEW]);
void weft_f_requests_out(int *given, int count, MPI_Request *made, MPI_Request few[WEFT_F_FEW]);
void weft_f_requests_free(const int *given, int count, MPI_Request *made, MPI_Request few[WEFT_F_FEW]);
/* Frees an array that is not `few`. */
void weft_f_free(void *made, void *few);
/* Raises MPI_ERR_NO_MEM on MPI_COMM_SELF and returns it. */
int weft_f_no_memory(void) __attribute__((cold));

/* Indices that C has set, from 0, as Fortran counts: from 1. count: how many, or MPI_UNDEFINED. */
void weft_f_indices_out(int *indices, int count);

/* Truth values: .FALSE. is one value, all others are true. */
typedef struct weft_f_truth {
    int yes, no;
} weft_f_truth;
extern weft_f_truth weft_f_truth_values __attribute__((visibility("hidden")));
static inline int weft_f_is_true(int logical) { return logical != weft_f_truth_values.no; }
static inline int weft_f_logical(int flag) { return flag ? weft_f_truth_values.yes : weft_f_truth_values.no; }
/* An array of logicals for C, as weft_f_types_in; and an array that C has set in place. */
int *weft_f_logicals_in(const int *given, int count, int few[WEFT_F_FEW]);
void weft_f_logicals_out(int *flags, int count);
/* Takes over the truth values that the program has registered (MPI 5.0 20.4.1); without them gfortran's are in force. */
void weft_f_truth_read(void);

/* A text for C without trailing, or leading and trailing, blanks; as weft_f_types_in. */
enum weft_f_trim { WEFT_F_TRAILING, WEFT_F_BOTH };
char *weft_f_text_in(const char *given, size_t length, enum weft_f_trim trim, char few[WEFT_F_TEXT]);
/* Fills the program's text with C's and blanks; cuts what does not fit. */
void weft_f_text_out(char *given, size_t length, const char *text);

/* The languages of src/base/language.h: Fortran, and its calls that MPI-2.0 deprecated, whose attributes are INTEGERs. */
extern const weft_language weft_f_language, weft_f_deprecated;
/* A copy, delete or conversion function: C's constant for a predefined one (MPI_COMM_NULL_COPY_FN), else itself. */
weft_f_function *weft_f_predefined(weft_f_function *function);

#endif
