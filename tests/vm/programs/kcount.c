// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the instructions that a system call takes, kernel and all. Only in a machine whose clock
 * counts them (boot.sh --icount): there a time difference is a number of instructions.
 *
 *	kcount [bpf KIND CGROUP] ioctl NODE [CMD]    by default FAKEGPU_PING
 *	kcount [bpf KIND CGROUP] open NODE           with its close
 *	kcount [bpf KIND CGROUP] getpid
 *
 * Prints "insn=MEDIAN same=N of=N calls=N": of so many batches so many gave the median, to a tenth
 * (arm64, whose clock is a coarse one: to one); a tick falls into some of the others. calls: how
 * many were made in all.
 *
 * bpf: first attaches a program to raw_syscalls/sys_enter that counts the ioctl calls of a cgroup
 * in a map, as one does who has no module for it. Prints "counted=N" too, what the map then holds.
 *	raw		on the raw tracepoint, hash map, atomic add
 *	raw-percpu	the same with a per-CPU hash map
 *	perf		on the perf event of the tracepoint, and only ioctls of fakegpu's type
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakegpu/fakegpu.h"
#include "tests/vm/programs/insn.h"

/* A batch of so many calls is far shorter than the time between two ticks. */
#ifdef __x86_64__
#define CALLS 50
#define EXACT 0.1
#else
#define CALLS 200
#define EXACT 1
#endif
#define BATCHES 101
#define WARM 50

static void __attribute__((noreturn)) die(const char *what)
{
	(void)fprintf(stderr, "kcount: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- What is measured. */

enum what {
	WHAT_IOCTL,
	WHAT_OPEN,
	WHAT_GETPID,
};

static enum what what;
static const char *node;
static unsigned long cmd = FAKEGPU_PING;
static int fd = -1;
static uint64_t calls;
static char args[4096];

static void call(void)
{
	calls++;
	if (what == WHAT_IOCTL) {
		(void)syscall(SYS_ioctl, fd, cmd, args);
	} else if (what == WHAT_OPEN) {
		long opened = syscall(SYS_openat, AT_FDCWD, node, O_RDWR, 0);

		(void)syscall(SYS_close, (int)opened);
	} else {
		(void)syscall(SYS_getpid);
	}
}

static void measure(void)
{
	double each[BATCHES], median;
	unsigned int same = 0;

	for (int i = 0; i < WARM; i++)
		call();
	for (int batch = 0; batch < BATCHES; batch++) {
		uint64_t begin = insn_now();

		for (int i = 0; i < CALLS; i++)
			call();
		each[batch] = (double)(insn_now() - begin) * insn_per_tick() / CALLS;
	}
	median = insn_median(each, BATCHES);
	for (int i = 0; i < BATCHES; i++)
		same += each[i] > median - EXACT && each[i] < median + EXACT;
	printf("insn=%.1f same=%u of=%d calls=%llu", median, same, BATCHES,
	       (unsigned long long)calls);
}

/* ---- The other way to count. */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

static int map_fd = -1;
static bool map_percpu;
static uint64_t map_key;

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static void make_map(bool percpu)
{
	union bpf_attr attr = { .map_type = percpu ? BPF_MAP_TYPE_PERCPU_HASH : BPF_MAP_TYPE_HASH,
				.key_size = sizeof(uint64_t),
				.value_size = sizeof(uint64_t),
				.max_entries = 1024 };
	/* Before 5.11 the memory of BPF counted as locked. */
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t values[1024] = { 0 };

	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	map_percpu = percpu;
	map_fd = (int)bpf(BPF_MAP_CREATE, &attr);
	if (map_fd < 0)
		die("BPF_MAP_CREATE");
	/* A node has many containers; each has its entry. */
	for (uint64_t i = 0; i <= 64; i++) {
		uint64_t key = i < 64 ? 1000000 + i : map_key;

		memset(&attr, 0, sizeof(attr));
		attr.map_fd = (uint32_t)map_fd;
		attr.key = (uintptr_t)&key;
		attr.value = (uintptr_t)values;
		if (bpf(BPF_MAP_UPDATE_ELEM, &attr) < 0)
			die("BPF_MAP_UPDATE_ELEM");
	}
}

static uint64_t read_map(void)
{
	uint64_t values[1024] = { 0 }, sum = 0;
	union bpf_attr attr = { .map_fd = (uint32_t)map_fd };

	attr.key = (uintptr_t)&map_key;
	attr.value = (uintptr_t)values;
	if (bpf(BPF_MAP_LOOKUP_ELEM, &attr) < 0)
		die("BPF_MAP_LOOKUP_ELEM");
	for (size_t i = 0; i < (map_percpu ? sizeof(values) / sizeof(values[0]) : 1); i++)
		sum += values[i];
	return sum;
}

/*
 * if (number of the call != ioctl [or its command's type is not fakegpu's]) return 0;
 * count = map_lookup(&map, current's cgroup id);
 * if (count) atomic add 1 (a per-CPU count: plain add)
 *
 * Both contexts have the number at offset 8: the raw one behind the pointer to the registers, the
 * event's behind its head. There the arguments follow.
 */
static int load(bool perf)
{
	struct bpf_insn prog[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 2, 1, 8, 0),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 2, 0, (int16_t)(perf ? 14 : 11), SYS_ioctl),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 2, 1, 24, 0), /* perf only, as the next two */
		INSN(BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, 0xff00),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 2, 0, 11, FAKEGPU_MAGIC << 8),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_cgroup_id),
		INSN(BPF_STX | BPF_MEM | BPF_DW, 10, 0, -8, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map_fd),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3, 0),
		/* Count it; replaced below for a per-CPU map. */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD),
		INSN(BPF_JMP | BPF_JA, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	size_t n = sizeof(prog) / sizeof(prog[0]);
	char text[65536] = "";
	union bpf_attr attr = { .prog_type = perf ? BPF_PROG_TYPE_TRACEPOINT :
						    BPF_PROG_TYPE_RAW_TRACEPOINT,
				.insns = (uintptr_t)prog,
				.license = (uintptr_t) "GPL",
				.log_buf = (uintptr_t)text,
				.log_size = sizeof(text),
				.log_level = 1 };
	int prog_fd;

	if (map_percpu) {
		prog[13] = INSN(BPF_LDX | BPF_MEM | BPF_DW, 1, 0, 0, 0);
		prog[14] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 1);
		prog[15] = INSN(BPF_STX | BPF_MEM | BPF_DW, 0, 1, 0, 0);
	}
	if (!perf) {
		memmove(prog + 2, prog + 5, (n - 5) * sizeof(prog[0]));
		n -= 3;
	}
	attr.insn_cnt = (uint32_t)n;
	prog_fd = (int)bpf(BPF_PROG_LOAD, &attr);
	if (prog_fd < 0) {
		int err = errno;

		(void)fputs(text, stderr);
		errno = err;
		die("BPF_PROG_LOAD");
	}
	return prog_fd;
}

static uint64_t tracepoint_id(void)
{
	FILE *f = fopen("/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id", "re");
	unsigned long long id = 0;

	if (!f || fscanf(f, "%llu", &id) != 1)
		die("the id of raw_syscalls/sys_enter");
	(void)fclose(f);
	return id;
}

/* Stays attached until this process ends. */
static void attach(const char *kind, const char *cgroup)
{
	bool perf = strcmp(kind, "perf") == 0;
	struct stat st;
	int prog_fd;

	if (stat(cgroup, &st) < 0)
		die(cgroup);
	map_key = st.st_ino;
	make_map(strcmp(kind, "raw-percpu") == 0);
	prog_fd = load(perf);
	if (perf) {
		struct perf_event_attr event = { .type = PERF_TYPE_TRACEPOINT,
						 .size = sizeof(event),
						 .config = tracepoint_id(),
						 .sample_period = 1 };
		int event_fd =
			(int)syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

		if (event_fd < 0 || ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, prog_fd) < 0 ||
		    ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			die("the perf event");
	} else {
		union bpf_attr attr = { .raw_tracepoint.name = (uintptr_t) "sys_enter",
					.raw_tracepoint.prog_fd = (uint32_t)prog_fd };

		if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
			die("BPF_RAW_TRACEPOINT_OPEN");
	}
}

int main(int argc, char **argv)
{
	uint64_t before = 0;

	if (argc > 3 && strcmp(argv[1], "bpf") == 0) {
		attach(argv[2], argv[3]);
		argv += 3;
		argc -= 3;
	}
	if (argc > 2 && strcmp(argv[1], "ioctl") == 0) {
		what = WHAT_IOCTL;
		if (argc > 3)
			cmd = strtoul(argv[3], NULL, 0);
		fd = open(argv[2], O_RDWR | O_CLOEXEC);
		if (fd < 0)
			die(argv[2]);
	} else if (argc > 2 && strcmp(argv[1], "open") == 0) {
		what = WHAT_OPEN;
		node = argv[2];
		fd = open(node, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			die(node);
	} else if (argc > 1 && strcmp(argv[1], "getpid") == 0) {
		what = WHAT_GETPID;
	} else {
		(void)fputs("kcount: the head of its source says how to call it\n", stderr);
		return 2;
	}
	if (map_fd >= 0)
		before = read_map();
	measure();
	if (map_fd >= 0)
		printf(" counted=%llu", (unsigned long long)(read_map() - before));
	putchar('\n');
	return 0;
}
