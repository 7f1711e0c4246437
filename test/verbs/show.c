/* SPDX-License-Identifier: BSD-3-Clause
 *
 * show: costs of one kind of transfer, for the tables of test/verbs/tables. Two ranks.
 *   show count BYTES TIMES   rank 0 sends TIMES messages to rank 1, which answers each by 4 bytes; counters are printed at exit
 *   show cpu BYTES TIMES     the same; rank 1 prints its CPU time and the whole machine's
 *   show tcp BYTES TIMES     the same over a plain TCP connection between the addresses SHOW_FROM and SHOW_TO, for comparison
 *   show overlap BYTES MODE  how much stands in the receive buffer after rank 1 has computed for a second without calling MPI;
 *                            MODE early: the message was announced before MPI_Irecv; late: after it
 */
#include <arpa/inet.h>
#include <mpi.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int rank;

static void die(const char *what)
{
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

typedef struct spent {
    double user, system; /* a software HCA in the kernel works in any process's system calls and interrupts */
} spent;

static spent process_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (spent){(double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec * 1e-6,
                   (double)use.ru_stime.tv_sec + (double)use.ru_stime.tv_usec * 1e-6};
}

/* All that was not idle: user, nice, system, interrupts. */
static double machine_seconds(void)
{
    unsigned long long user, nice, system, idle, wait, irq, soft;
    FILE *stat = fopen("/proc/stat", "r");
    if (!stat || fscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &irq, &soft) != 7)
        die("/proc/stat");
    fclose(stat);
    return (double)(user + nice + system + irq + soft) / (double)sysconf(_SC_CLK_TCK);
}

/* -- by MPI, or by a socket -- */

static int wire = -1;

static void put(const void *from, int bytes)
{
    if (wire < 0) {
        MPI_Send(from, bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
        return;
    }
    for (int done = 0; done < bytes;) {
        ssize_t n = write(wire, (const char *)from + done, (size_t)(bytes - done));
        if (n <= 0)
            die("write");
        done += (int)n;
    }
}

static void get(void *to, int bytes)
{
    if (wire < 0)
        MPI_Recv(to, bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (recv(wire, to, (size_t)bytes, MSG_WAITALL) != bytes)
        die("recv");
}

static void bind_to(int fd, const char *address_name, const char *device_name)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *text = getenv(address_name), *device = getenv(device_name);
    if (!text || inet_pton(AF_INET, text, &address.sin_addr) != 1)
        die(address_name);
    if (device && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device)))
        die("SO_BINDTODEVICE");
    if (bind(fd, (struct sockaddr *)&address, sizeof address))
        die("bind");
}

/* Rank 1 listens at SHOW_TO on the device SHOW_TO_DEVICE, rank 0 connects from SHOW_FROM on SHOW_FROM_DEVICE. */
static void connect_wire(void)
{
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bind_to(fd, rank ? "SHOW_TO" : "SHOW_FROM", rank ? "SHOW_TO_DEVICE" : "SHOW_FROM_DEVICE");
    if (rank) {
        listen(fd, 1);
        getsockname(fd, (struct sockaddr *)&address, &bytes);
        MPI_Send(&address, sizeof address, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        wire = accept(fd, NULL, NULL);
        close(fd);
    } else {
        MPI_Recv(&address, sizeof address, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (connect(fd, (struct sockaddr *)&address, sizeof address))
            die("connect");
        wire = fd;
    }
    if (wire < 0)
        die("accept");
}

static void transfer(char *buffer, int bytes, int times)
{
    int answer = 0;
    for (int i = 0; i < times; i++) {
        if (rank == 0) {
            put(buffer, bytes);
            get(&answer, sizeof answer);
        } else {
            get(buffer, bytes);
            put(&answer, sizeof answer);
        }
    }
}

static void show_cpu(char *buffer, int bytes, int times)
{
    transfer(buffer, bytes, 1); /* connections, registrations */
    MPI_Barrier(MPI_COMM_WORLD);
    spent before = process_seconds(), after;
    double machine = machine_seconds(), clock = MPI_Wtime();
    transfer(buffer, bytes, times);
    after = process_seconds();
    machine = machine_seconds() - machine;
    clock = MPI_Wtime() - clock;
    MPI_Barrier(MPI_COMM_WORLD);
    printf("| %s | %.1f | %.3f | %.3f | %.2f | %.2f |\n", rank ? "receiver" : "sender", (double)bytes * times / 1e6,
           after.user - before.user,
           after.system - before.system, machine, clock);
}

static void compute_for_a_second(void)
{
    volatile double sum = 0;
    for (double end = MPI_Wtime() + 1; MPI_Wtime() < end;)
        for (int i = 0; i < 1000; i++)
            sum += i;
}

static void show_overlap(char *buffer, int bytes, const char *mode)
{
    MPI_Request request;
    int there = 0, flag;
    for (int i = 0; i < 3; i++) /* warm-up: connections, registrations, protocol selection */
        transfer(buffer, bytes, 1);
    memset(buffer, rank ? 0 : 1, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        if (strcmp(mode, "late") == 0)
            usleep(300000);
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        return;
    }
    if (strcmp(mode, "early") == 0)
        MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
    compute_for_a_second();
    for (int i = 0; i < bytes; i++)
        there += buffer[i];
    double rest = MPI_Wtime();
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (!flag)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    rest = MPI_Wtime() - rest;
    printf("%s: %.1f %% of %d bytes stood there after a second of computing; the wait took %.4f s\n", mode,
           100.0 * there / bytes, bytes, rest);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int bytes = atoi(argv[2]);
    char *buffer = malloc((size_t)bytes + 1);
    if (!buffer)
        die("malloc");
    memset(buffer, 1, (size_t)bytes);
    if (strcmp(argv[1], "tcp") == 0)
        connect_wire();
    if (strcmp(argv[1], "overlap") == 0)
        show_overlap(buffer, bytes, argv[3]);
    else if (strcmp(argv[1], "count") == 0)
        transfer(buffer, bytes, atoi(argv[3]));
    else
        show_cpu(buffer, bytes, atoi(argv[3]));
    free(buffer);
    MPI_Finalize();
    return 0;
}
