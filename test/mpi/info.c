/* np: 1 3 : info objects keep pairs in order, copy, cut and refuse as the standard says, from threads, before init and after finalize */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <unistd.h>

#include "expect.h"

static void expect_value(MPI_Info info, const char *key, const char *value)
{
    char got[MPI_MAX_INFO_VAL + 1] = "unchanged";
    int flag = -1, length = sizeof got;
    OK(MPI_Info_get_string(info, key, &length, got, &flag));
    CHECK(flag == (value != NULL), "key %s", key);
    CHECK(!strcmp(got, value ? value : "unchanged"), "key %s has '%s'", key, got);
    CHECK(length == (value ? (int)strlen(value) + 1 : (int)sizeof got), "key %s: buflen %d", key, length);
}

static void expect_keys(MPI_Info info, int n, const char *const *keys)
{
    char key[MPI_MAX_INFO_KEY];
    int count = -1;
    OK(MPI_Info_get_nkeys(info, &count));
    CHECK(count == n, "%d keys", count);
    for (int i = 0; i < n; i++) {
        OK(MPI_Info_get_nthkey(info, i, key));
        CHECK(!strcmp(key, keys[i]), "key %d is %s", i, key);
    }
}

/* Order, replacement, deletion, copies. */
static void pairs(void)
{
    static const char *const three[] = {"b", "a", " c "}, *const two[] = {"b", " c "};
    MPI_Info info, copy;
    OK(MPI_Info_create(&info));
    expect_keys(info, 0, NULL);
    OK(MPI_Info_set(info, "b", "1"));
    OK(MPI_Info_set(info, "a", "2"));
    OK(MPI_Info_set(info, " c ", " 3 ")); /* C: blanks belong to key and value */
    OK(MPI_Info_set(info, "b", "one"));
    expect_keys(info, 3, three);
    expect_value(info, "b", "one");
    expect_value(info, " c ", " 3 ");
    expect_value(info, "c", NULL);
    expect_value(info, "B", NULL); /* keys are case sensitive */
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_delete(info, "a"));
    expect_keys(info, 2, two);
    expect_keys(copy, 3, three); /* a copy of its own */
    OK(MPI_Info_set(copy, "empty", ""));
    expect_value(copy, "empty", "");
    expect_value(info, "empty", NULL);
    CHECK(MPI_Info_fromint(MPI_Info_toint(copy)) == copy && MPI_Info_toint(MPI_INFO_NULL) == 0x130);
    OK(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL);
    expect_value(copy, "a", "2");
    OK(MPI_Info_free(&copy));
}

/* Buffers that are too short, and the deprecated forms. */
static void cut(void)
{
    MPI_Info info;
    char value[8];
    int flag, length;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "k", "12345"));
    for (int room = 1; room < 8; room++) {
        memset(value, 'x', sizeof value);
        length = room;
        OK(MPI_Info_get_string(info, "k", &length, value, &flag));
        CHECK(flag == 1 && length == 6);
        CHECK(strlen(value) == (size_t)(room < 6 ? room - 1 : 5) && !strncmp(value, "12345", strlen(value)), "%d: '%s'", room, value);
    }
    length = 0;
    OK(MPI_Info_get_string(info, "k", &length, NULL, &flag)); /* asks for the size */
    CHECK(flag == 1 && length == 6);
    memset(value, 'x', sizeof value);
    OK(MPI_Info_get(info, "k", 3, value, &flag)); /* 3 characters and a 0 */
    CHECK(flag == 1 && !strcmp(value, "123") && value[4] == 'x');
    OK(MPI_Info_get(info, "none", 3, value, &flag));
    CHECK(flag == 0 && !strcmp(value, "123"));
    length = -7;
    OK(MPI_Info_get_valuelen(info, "none", &length, &flag));
    CHECK(flag == 0 && length == -7);
    OK(MPI_Info_get_valuelen(info, "k", &length, &flag));
    CHECK(flag == 1 && length == 5);
    OK(MPI_Info_free(&info));
}

static void refusals(void)
{
    char key[MPI_MAX_INFO_KEY + 1], *value = malloc(MPI_MAX_INFO_VAL + 2), text[MPI_MAX_INFO_KEY];
    int flag, length = 4;
    MPI_Info info, gone, null = MPI_INFO_NULL, env = MPI_INFO_ENV;
    memset(key, 'k', sizeof key);
    memset(value, 'v', MPI_MAX_INFO_VAL + 2);
    OK(MPI_Info_create(&info));
    key[MPI_MAX_INFO_KEY] = 0;
    BAD(MPI_Info_set(info, key, "1"), MPI_ERR_INFO_KEY, "255");
    BAD(MPI_Info_get_string(info, key, &length, text, &flag), MPI_ERR_INFO_KEY, "kkk");
    BAD(MPI_Info_get(info, key, 1, text, &flag), MPI_ERR_INFO_KEY, "255");
    BAD(MPI_Info_get_valuelen(info, key, &length, &flag), MPI_ERR_INFO_KEY, "255");
    BAD(MPI_Info_delete(info, key), MPI_ERR_INFO_KEY, "255");
    BAD(MPI_Info_set(info, "", "1"), MPI_ERR_INFO_KEY, "empty");
    value[MPI_MAX_INFO_VAL + 1] = 0;
    BAD(MPI_Info_set(info, "k", value), MPI_ERR_INFO_VALUE, "1024");
    key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL] = 0; /* the longest that are allowed */
    OK(MPI_Info_set(info, key, value));
    expect_value(info, key, value);
    BAD(MPI_Info_delete(info, "x"), MPI_ERR_INFO_NOKEY, "'x'");
    BAD(MPI_Info_get_nthkey(info, 1, text), MPI_ERR_ARG, "n is 1");
    BAD(MPI_Info_get_nthkey(info, -1, text), MPI_ERR_ARG, "n is -1");
    length = -1;
    BAD(MPI_Info_get_string(info, key, &length, text, &flag), MPI_ERR_ARG, "buflen is -1");
    BAD(MPI_Info_get(info, key, -1, text, &flag), MPI_ERR_ARG, "valuelen is -1");
    BAD(MPI_Info_set(info, NULL, "x"), MPI_ERR_ARG, "key");
    BAD(MPI_Info_set(info, "k", NULL), MPI_ERR_ARG, "value");
    BAD(MPI_Info_create(NULL), MPI_ERR_ARG, "info");
    BAD(MPI_Info_dup(null, &gone), MPI_ERR_INFO, "MPI_INFO_NULL");
    BAD(MPI_Info_free(&null), MPI_ERR_INFO, "MPI_INFO_NULL");
    BAD(MPI_Info_set(null, "k", "v"), MPI_ERR_INFO, "MPI_INFO_NULL");
    BAD(MPI_Info_free(&env), MPI_ERR_INFO, "MPI_INFO_ENV");
    BAD(MPI_Info_set(MPI_INFO_ENV, "k", "v"), MPI_ERR_INFO, "MPI_INFO_ENV");
    BAD(MPI_Info_delete(MPI_INFO_ENV, "command"), MPI_ERR_INFO, "MPI_INFO_ENV");
    gone = info;
    length = MPI_Info_toint(info);
    OK(MPI_Info_free(&info));
    BAD(MPI_Info_get_nkeys(gone, &flag), MPI_ERR_INFO, "freed");
    BAD(MPI_Alloc_mem(8, gone, &value), MPI_ERR_INFO, "MPI_Alloc_mem");
    CHECK(MPI_Info_fromint(length) == MPI_INFO_NULL);
    free(value);
}

/* MPI_INFO_ENV and MPI_Info_create_env. */
static void environment(int size, int argc, char **argv)
{
    char text[MPI_MAX_INFO_VAL + 1], directory[512], *other[] = {"prog", "-x", "a b"};
    MPI_Info info;
    CHECK(getcwd(directory, sizeof directory));
    expect_value(MPI_INFO_ENV, "wdir", directory);
    snprintf(text, sizeof text, "%d", size);
    expect_value(MPI_INFO_ENV, "maxprocs", text);
    expect_value(MPI_INFO_ENV, "command", argv[0]);
    OK(MPI_Info_create_env(argc, argv, &info));
    expect_value(info, "command", argv[0]);
    OK(MPI_Info_set(info, "mine", "1"));
    expect_value(MPI_INFO_ENV, "mine", NULL);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_create_env(3, other, &info));
    expect_value(info, "command", "prog");
    expect_value(info, "argv", "-x a b");
    OK(MPI_Info_free(&info));
    OK(MPI_Info_create_env(0, NULL, &info));
    expect_value(info, "command", argv[0]);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_dup(MPI_INFO_ENV, &info));
    OK(MPI_Info_set(info, "wdir", "/"));
    OK(MPI_Info_free(&info));
    CHECK(MPI_Info_toint(MPI_INFO_ENV) == 0x131 && MPI_Info_fromint(0x131) == MPI_INFO_ENV);
}

/* Threads set and read one object, and make and free their own. */
static void *worker(void *shared)
{
    char key[16], value[16];
    int flag, length;
    for (int i = 0; i < 300; i++) {
        MPI_Info own;
        snprintf(key, sizeof key, "key%d", i % 20);
        OK(MPI_Info_set(*(MPI_Info *)shared, key, "value"));
        length = sizeof value;
        OK(MPI_Info_get_string(*(MPI_Info *)shared, key, &length, value, &flag));
        CHECK(flag && !strcmp(value, "value"));
        OK(MPI_Info_dup(*(MPI_Info *)shared, &own));
        OK(MPI_Info_delete(own, key));
        OK(MPI_Info_free(&own));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t ids[4];
    MPI_Info shared;
    int n;
    OK(MPI_Info_create(&shared));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&ids[i], NULL, worker, &shared) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    OK(MPI_Info_get_nkeys(shared, &n));
    CHECK(n == 20);
    OK(MPI_Info_free(&shared));
}

int main(int argc, char **argv)
{
    int rank, size;
    pairs(); /* always available: MPI 5.0 11.4.1 */
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    pairs();
    cut();
    refusals();
    environment(size, argc, argv);
    threads();
    OK(MPI_Finalize());
    pairs();
    cut();
    return 0;
}
