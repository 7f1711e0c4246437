/* np: 1 2 : MPI_T: control and performance variables, categories and enumerations can be listed and read; misuse returns errors */
#include "check.h"

#define TEXT 1024

static int find_pvar(const char *name, int var_class)
{
    int index = -1;
    OK(MPI_T_pvar_get_index(name, var_class, &index));
    return index;
}

static void before_init_thread(void)
{
    int n = 0, provided;
    MPI_T_pvar_session session;
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_pvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_category_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_category_changed(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_event_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_source_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_pvar_session_create(&session) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_init_thread(12345, &provided) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
}

/* Strings are truncated at capacity - 1. The length returned is that of the whole with its 0; without a length nothing is returned. */
static void strings(int index)
{
    char name[TEXT], small[5] = "....", untouched = 'x';
    int whole = sizeof name, length = sizeof small, zero = 0;
    OK(MPI_T_cvar_get_info(index, name, &whole, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(whole == (int)strlen(name) + 1);
    OK(MPI_T_cvar_get_info(index, small, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(length == whole && strncmp(small, name, 4) == 0 && small[4] == 0, "%s", small);
    length = 7;
    OK(MPI_T_cvar_get_info(index, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(length == whole);
    OK(MPI_T_cvar_get_info(index, &untouched, &zero, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(zero == whole && untouched == 'x');
    OK(MPI_T_cvar_get_info(index, &untouched, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(untouched == 'x');
}

static void enumeration(MPI_T_enum enumtype, int value)
{
    char name[TEXT];
    int items = 0, length = sizeof name, seen = 0;
    OK(MPI_T_enum_get_info(enumtype, &items, name, &length));
    CHECK(items >= 2 && length > 1);
    for (int i = 0; i < items; i++) {
        int code = -1;
        length = sizeof name;
        OK(MPI_T_enum_get_item(enumtype, i, &code, name, &length));
        CHECK(length > 1 && !strchr(name, '|'), "%s", name);
        seen += code == value;
    }
    CHECK(seen == 1);
    CHECK(MPI_T_enum_get_item(enumtype, items, &value, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_enum_get_item(enumtype, -1, &value, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
}

static void one_cvar(int index)
{
    union { char text[TEXT]; int number; unsigned long long large; } value;
    char name[TEXT], desc[TEXT];
    int name_len = sizeof name, desc_len = sizeof desc, verbosity = 0, bind = 0, scope = 0, count = 0, back = -1;
    MPI_Datatype datatype = MPI_DATATYPE_NULL;
    MPI_T_enum enumtype = MPI_T_ENUM_NULL;
    MPI_T_cvar_handle handle, copy;
    OK(MPI_T_cvar_get_info(index, name, &name_len, &verbosity, &datatype, &enumtype, desc, &desc_len, &bind, &scope));
    CHECK(strncmp(name, "WEFT_", 5) == 0 && desc_len > 10 && bind == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_READONLY);
    CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
    CHECK(datatype == MPI_INT || datatype == MPI_UNSIGNED_LONG_LONG || datatype == MPI_CHAR);
    OK(MPI_T_cvar_get_index(name, &back));
    CHECK(back == index);
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(datatype == MPI_CHAR ? count <= TEXT : count == 1);
    OK(MPI_T_cvar_read(handle, &value));
    if (enumtype != MPI_T_ENUM_NULL)
        enumeration(enumtype, value.number);
    if (strcmp(name, "WEFT_CREDIT_KIB") == 0)
        CHECK(value.number == 512, "%d", value.number); /* set by main */
    if (strcmp(name, "WEFT_REGCACHE_MAX_SIZE") == 0)
        CHECK(value.large == 3u << 20, "%llu", value.large);
    if (strcmp(name, "WEFT_DEVICES") == 0)
        CHECK(strcmp(value.text, "none:1") == 0, "%s", value.text);
    if (strcmp(name, "WEFT_CHECKSUM") == 0)
        CHECK(value.number == 0);
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_T_ERR_CVAR_SET_NEVER);
    CHECK(MPI_T_cvar_read(handle, NULL) == MPI_T_ERR_INVALID);
    copy = handle;
    OK(MPI_T_cvar_handle_free(&handle));
    CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    CHECK(MPI_T_cvar_read(copy, &value) == MPI_T_ERR_INVALID_HANDLE); /* freed: detected */
    CHECK(MPI_T_cvar_handle_free(&copy) == MPI_T_ERR_INVALID_HANDLE);
}

static void cvars(void)
{
    int n = 0, index, count, value;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    OK(MPI_T_cvar_get_num(&n));
    CHECK(n > 10);
    for (int i = 0; i < n; i++)
        one_cvar(i);
    strings(n - 1);
    CHECK(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_index("WEFT_NO_SUCH", &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_cvar_get_index(NULL, &index) == MPI_T_ERR_INVALID && MPI_T_cvar_get_index("x", NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_cvar_handle_alloc(n, NULL, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_handle_alloc(0, NULL, NULL, &count) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_cvar_write((MPI_T_cvar_handle)&value, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_cvar_handle_free(&handle) == MPI_T_ERR_INVALID_HANDLE && MPI_T_cvar_handle_free(NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_cvar_get_num(NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_enum_get_info((MPI_T_enum)&value, &n, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &n, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
}

static void one_pvar(MPI_T_pvar_session session, int index)
{
    union { unsigned narrow; unsigned long long wide; } value = {.wide = 0};
    char name[TEXT], desc[TEXT];
    int name_len = sizeof name, desc_len = sizeof desc, verbosity, var_class, bind, readonly, continuous, atomic, count, back = -1;
    MPI_Datatype datatype;
    MPI_T_enum enumtype;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_info(index, name, &name_len, &verbosity, &var_class, &datatype, &enumtype, desc, &desc_len, &bind, &readonly,
                           &continuous, &atomic));
    CHECK(name_len > 5 && desc_len > 10 && enumtype == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT);
    CHECK(datatype == MPI_UNSIGNED || datatype == MPI_UNSIGNED_LONG_LONG);
    OK(MPI_T_pvar_get_index(name, var_class, &back));
    CHECK(back == index);
    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_PERCENTAGE, &back) == MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    CHECK(count == 1);
    CHECK(MPI_T_pvar_start(session, handle) == (continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS));
    CHECK(MPI_T_pvar_stop(session, handle) == (continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS));
    OK(MPI_T_pvar_read(session, handle, &value));
    CHECK(MPI_T_pvar_reset(session, handle) == (readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS));
    CHECK(MPI_T_pvar_write(session, handle, &value) == (readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS));
    CHECK(MPI_T_pvar_readreset(session, handle, &value) == (readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS));
    OK(MPI_T_pvar_handle_free(session, &handle));
    CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
}

static void bad_pvars(MPI_T_pvar_session session, int n)
{
    unsigned long long value = 0;
    int count, index;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL, copy, elsewhere;
    MPI_T_pvar_session other, gone;
    OK(MPI_T_pvar_session_create(&other));
    CHECK(MPI_T_pvar_handle_alloc(session, n, NULL, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_pvar_handle_alloc(session, -1, NULL, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, 0, NULL, &handle, &count) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_handle_alloc(session, 0, NULL, NULL, &count) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_pvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_pvar_get_index("weft_no_such", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_pvar_handle_alloc(other, 0, NULL, &elsewhere, &count));
    CHECK(MPI_T_pvar_read(session, elsewhere, &value) == MPI_T_ERR_INVALID_HANDLE); /* of another session */
    CHECK(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_write(session, MPI_T_PVAR_ALL_HANDLES, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_readreset(session, MPI_T_PVAR_HANDLE_NULL, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_HANDLE_NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_start(MPI_T_PVAR_SESSION_NULL, MPI_T_PVAR_ALL_HANDLES) == MPI_T_ERR_INVALID_SESSION);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES)); /* no variable that can be started: success */
    CHECK(MPI_T_pvar_read(other, elsewhere, NULL) == MPI_T_ERR_INVALID);
    copy = elsewhere;
    gone = other;
    OK(MPI_T_pvar_session_free(&other)); /* with its handles */
    CHECK(other == MPI_T_PVAR_SESSION_NULL);
    CHECK(MPI_T_pvar_read(gone, copy, &value) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_handle_free(session, &copy) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_session_free(&gone) == MPI_T_ERR_INVALID_SESSION && MPI_T_pvar_session_free(NULL) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_session_create(NULL) == MPI_T_ERR_INVALID);
}

static void pvars(void)
{
    int n = 0;
    MPI_T_pvar_session session;
    OK(MPI_T_pvar_get_num(&n));
    CHECK(n > 20);
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < n; i++)
        one_pvar(session, i);
    bad_pvars(session, n);
    OK(MPI_T_pvar_session_free(&session));
}

/* Every variable is in exactly one category, and all categories are children of the first. */
static void categories(void)
{
    enum { MAX = 256 };
    int n = 0, cvars_there, pvars_there, cvars_seen = 0, pvars_seen[MAX] = {0}, indices[MAX], stamp = -1;
    OK(MPI_T_category_get_num(&n));
    OK(MPI_T_cvar_get_num(&cvars_there));
    OK(MPI_T_pvar_get_num(&pvars_there));
    for (int i = 0; i < n; i++) {
        char name[TEXT];
        int length = sizeof name, back = -1, cvars_here, pvars_here, below, events = -1;
        OK(MPI_T_category_get_info(i, name, &length, NULL, NULL, &cvars_here, &pvars_here, &below));
        OK(MPI_T_category_get_index(name, &back));
        CHECK(back == i && below == (i == 0 ? n - 1 : 0));
        OK(MPI_T_category_get_cvars(i, MAX, indices));
        cvars_seen += cvars_here;
        for (int k = 0; k < MAX; k++)
            indices[k] = -1;
        OK(MPI_T_category_get_pvars(i, MAX, indices));
        for (int k = 0; k < MAX; k++) {
            CHECK((indices[k] >= 0) == (k < pvars_here));
            if (indices[k] >= 0)
                pvars_seen[indices[k]]++;
        }
        if (pvars_here > 1) { /* the first ones, no more than requested */
            int two[2] = {-7, -7};
            OK(MPI_T_category_get_pvars(i, 1, two));
            CHECK(two[0] == indices[0] && two[1] == -7, "%d %d", two[0], two[1]);
        }
        OK(MPI_T_category_get_categories(i, MAX, indices));
        CHECK(!below || (indices[0] == 1 && indices[below - 1] == n - 1));
        OK(MPI_T_category_get_num_events(i, &events));
        OK(MPI_T_category_get_events(i, MAX, indices));
        CHECK(events >= 0 && events <= MAX);
    }
    CHECK(cvars_seen == cvars_there);
    for (int i = 0; i < pvars_there; i++)
        CHECK(pvars_seen[i] == 1, "performance variable %d", i);
    indices[0] = indices[1] = -7;
    OK(MPI_T_category_get_categories(0, 1, indices));
    CHECK(indices[0] == 1 && indices[1] == -7); /* no more than requested */
    OK(MPI_T_category_changed(&stamp));
    CHECK(stamp >= 0);
    CHECK(MPI_T_category_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_category_get_pvars(-1, 1, indices) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_category_get_cvars(0, -1, indices) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_category_get_categories(0, 3, NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_category_get_num_events(n, &n) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_category_get_index("none", &stamp) == MPI_T_ERR_INVALID_NAME);
}

/* Invalid handles and indices; test/mpi/tool_events has the rest. */
static void events(void)
{
    int n = -1, elements = 0;
    MPI_Count ticks;
    MPI_Info info;
    MPI_T_event_registration no_registration = (MPI_T_event_registration)&n;
    MPI_T_event_instance no_event = (MPI_T_event_instance)&n;
    CHECK(MPI_T_event_get_num(NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_event_get_index("none", &n) == MPI_T_ERR_INVALID_NAME && MPI_T_event_get_index(NULL, &n) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_event_get_info(-1, NULL, NULL, NULL, NULL, NULL, &elements, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &no_registration) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_event_handle_free(no_registration, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_handle_get_info(no_registration, &info) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_handle_set_info(no_registration, MPI_INFO_NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_register_callback(no_registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_callback_get_info(no_registration, MPI_T_CB_REQUIRE_NONE, &info) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_callback_set_info(no_registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_set_dropped_handler(no_registration, NULL) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_read(no_event, 0, &n) == MPI_T_ERR_INVALID_HANDLE && MPI_T_event_copy(no_event, &n) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_get_source(no_event, &n) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_event_get_timestamp(no_event, &ticks) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_source_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_source_get_timestamp(-1, &ticks) == MPI_T_ERR_INVALID_INDEX);
}

static void all(void)
{
    cvars();
    pvars();
    categories();
    events();
}

/* The interface's error codes have names, too. */
static void error_strings(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    OK(MPI_Error_string(MPI_T_ERR_CVAR_SET_NEVER, text, &length));
    CHECK(strstr(text, "MPI_T_ERR_CVAR_SET_NEVER") == text, "%s", text);
    OK(MPI_Error_class(MPI_T_ERR_PVAR_NO_ATOMIC, &class));
    CHECK(class == MPI_T_ERR_PVAR_NO_ATOMIC);
}

int main(int argc, char **argv)
{
    int rank, size, provided = -1;
    setenv("WEFT_CREDIT_KIB", "512", 1);
    setenv("WEFT_REGCACHE_MAX_SIZE", "3M", 1);
    setenv("WEFT_DEVICES", "none:1", 1);
    before_init_thread();
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    all();
    check_start(&argc, &argv, &rank, &size);
    all();
    error_strings();
    OK(MPI_T_finalize());
    CHECK(find_pvar("weft_bytes_copied", MPI_T_PVAR_CLASS_COUNTER) >= 0); /* one MPI_T_init_thread is left */
    OK(MPI_Finalize());
    all();
    OK(MPI_T_finalize());
    before_init_thread();
    OK(MPI_T_init_thread(MPI_THREAD_FUNNELED, &provided)); /* again */
    all();
    OK(MPI_T_finalize());
    return 0;
}
