/* np: 1 2 : classes, codes and strings that the program adds: values, removal, handlers, MPI_LASTUSEDCODE, refusals */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"

static int calls, last_code;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    calls++;
    last_code = *code;
}

static void expect(int code, int class, const char *string)
{
    char text[MPI_MAX_ERROR_STRING] = "x";
    int got = -1, length = -1;
    OK(MPI_Error_class(code, &got));
    CHECK(got == class, "class of %d is %d", code, got);
    OK(MPI_Error_string(code, text, &length));
    CHECK(!strcmp(text, string) && length == (int)strlen(string), "string of %d is '%s'", code, text);
}

static int last_used(void)
{
    int *value = NULL, flag = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    return *value;
}

/* May be called before MPI_Init. */
static void life(void)
{
    int class, other, code[40], again;
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_class(&other));
    CHECK(class > MPI_ERR_LASTCODE && other > MPI_ERR_LASTCODE && other != class);
    expect(class, class, "");
    for (int i = 0; i < 40; i++) {
        char text[32];
        OK(MPI_Add_error_code(i < 39 ? class : MPI_ERR_IO, &code[i]));
        expect(code[i], i < 39 ? class : MPI_ERR_IO, "");
        snprintf(text, sizeof text, "code number %d", i);
        OK(MPI_Add_error_string(code[i], text));
        expect(code[i], i < 39 ? class : MPI_ERR_IO, text);
    }
    OK(MPI_Add_error_string(class, "a class"));
    OK(MPI_Add_error_string(class, "the class")); /* replaces */
    expect(class, class, "the class");
    expect(code[7], class, "code number 7");
    for (int i = 0; i < 40; i++) {
        OK(MPI_Remove_error_string(code[i]));
        expect(code[i], i < 39 ? class : MPI_ERR_IO, "");
        OK(MPI_Remove_error_code(code[i]));
    }
    OK(MPI_Remove_error_string(class));
    OK(MPI_Remove_error_class(class));
    OK(MPI_Add_error_class(&again));
    CHECK(again > MPI_ERR_LASTCODE);
    OK(MPI_Remove_error_class(again));
    OK(MPI_Remove_error_class(other));
}

static void raised(void)
{
    MPI_Errhandler errhandler;
    int class, code, before = last_used();
    OK(MPI_Add_error_class(&class));
    CHECK(last_used() >= class);
    OK(MPI_Add_error_code(class, &code));
    CHECK(last_used() >= code);
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler));
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, code));
    CHECK(calls == 1 && last_code == code);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, class));
    OK(MPI_Errhandler_free(&errhandler));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
    CHECK(last_used() == before);
}

static void expect_error(int line, int code, const char *word)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    if (class != MPI_ERR_ARG || !strstr(text, word))
        check_fail(__FILE__, line, "class and text", "class %d; text lacks '%s': %s", class, word, text);
}
#define BAD(call, word) expect_error(__LINE__, (call), word)

static void refusals(void)
{
    char text[MPI_MAX_ERROR_STRING + 2];
    int class, code, n;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "text"));
    BAD(MPI_Remove_error_class(class), "has error codes");
    BAD(MPI_Remove_error_code(code), "has a string");
    BAD(MPI_Remove_error_code(class), "not an error code");
    BAD(MPI_Remove_error_class(code), "not an error class");
    BAD(MPI_Remove_error_class(MPI_ERR_IO), "not an error class");
    BAD(MPI_Add_error_code(code, &n), "but an error code");
    BAD(MPI_Add_error_code(4000, &n), "not an error class");
    BAD(MPI_Add_error_code(MPI_SUCCESS, &n), "not an error class");
    BAD(MPI_Add_error_string(MPI_ERR_IO, "x"), "fixed");
    BAD(MPI_Add_error_string(code, NULL), "string is NULL");
    BAD(MPI_Remove_error_string(MPI_ERR_IO), "fixed");
    BAD(MPI_Remove_error_string(class), "no string");
    BAD(MPI_Remove_error_string(class + 1000), "errorcode is");
    BAD(MPI_Error_class(class + 1000, &n), "errorcode is");
    BAD(MPI_Error_class(-1, &n), "errorcode is -1");
    BAD(MPI_Error_string(class + 1000, text, &n), "errorcode is");
    memset(text, 'x', sizeof text);
    text[MPI_MAX_ERROR_STRING + 1] = 0;
    BAD(MPI_Add_error_string(code, text), "512");
    text[MPI_MAX_ERROR_STRING] = 0; /* the longest: what MPI_Error_string has space for is returned */
    OK(MPI_Add_error_string(code, text));
    OK(MPI_Error_string(code, text, &n));
    CHECK(n == MPI_MAX_ERROR_STRING - 1 && strspn(text, "x") == (size_t)n);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    BAD(MPI_Remove_error_code(code), "not an error code");
    OK(MPI_Remove_error_class(class));
    BAD(MPI_Remove_error_class(class), "not an error class");
}

static void *worker(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++)
        life();
    return NULL;
}

static void *worker_codes(void *unused)
{
    int code;
    (void)unused;
    for (int i = 0; i < 500; i++) {
        OK(MPI_Add_error_code(MPI_ERR_OTHER, &code));
        OK(MPI_Add_error_string(code, "thread"));
        expect(code, MPI_ERR_OTHER, "thread");
        OK(MPI_Remove_error_string(code));
        OK(MPI_Remove_error_code(code));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t ids[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&ids[i], NULL, i ? worker_codes : worker, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
    int rank, size;
    life();
    check_start(&argc, &argv, &rank, &size);
    life();
    raised();
    refusals();
    OK(MPI_Finalize());
    threads();
    return 0;
}
