// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the system calls that the agent makes behind its own filter, with those arguments that the
 * filter looks at (agent/sandbox_rules.c), and how many the filter refuses: the kernel asks it
 * before it tells of a call.
 *
 *	agentcalls READY   makes the file READY when it counts, and when SIGTERM comes it prints for
 *	                   each call that was made a line "## call NUMBER ARGUMENT TIMES", and one
 *	                   "## refused TIMES"
 *
 * It is the agent from the moment when a thread of that name loads a filter for all threads, and
 * until its process executes something else. Needs a kernel with BPF on tracepoints.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS "/sys/kernel/tracing/events/"

/* si_code of a SIGSYS from seccomp; not in every libc's headers. */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

struct key {
	uint64_t call;
	uint64_t argument;
};

static void __attribute__((noreturn)) die(const char *what)
{
	(void)fprintf(stderr, "agentcalls: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int make_map(uint32_t key_size, uint32_t entries)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_HASH,
				.key_size = key_size,
				.value_size = sizeof(uint64_t),
				.max_entries = entries };
	int fd = (int)bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		die("BPF_MAP_CREATE");
	return fd;
}

/* ---- An assembler for one program. */

/* Registers that a call of the kernel's leaves as they are. */
#define RECORD BPF_REG_6 /* the tracepoint's */
#define NUMBER BPF_REG_7
#define ARG BPF_REG_8
#define STACK BPF_REG_10
/* Places on the stack, which grows down from its register. */
#define PROCESS (-8)
#define KEY (-24) /* 16 bytes */
#define ONE (-32)
#define COMM (-48) /* 16 bytes */

/* Offsets in the record of raw_syscalls/sys_enter; of an int in that of signal/signal_generate. */
#define CALL_NUMBER 8
#define CALL_ARGUMENT(n) (16 + 8 * (n))
#define SIGNAL_NUMBER 8
#define SIGNAL_CODE 16

/* In the place of a call's number: any that was refused. */
#define REFUSED UINT64_MAX

static struct bpf_insn prog[256];
static uint32_t len;

static uint32_t emit(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	prog[len] = (struct bpf_insn){
		.code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm
	};
	return len++;
}

/* A jump that is taken to where land() is called for it, if @reg is, or is not, @value. */
static uint32_t jump_if(uint8_t reg, int32_t value)
{
	return emit(BPF_JMP | BPF_JEQ | BPF_K, reg, 0, 0, value);
}

static uint32_t jump_unless(uint8_t reg, int32_t value)
{
	return emit(BPF_JMP | BPF_JNE | BPF_K, reg, 0, 0, value);
}

static void land(uint32_t jump)
{
	prog[jump].off = (int16_t)(len - jump - 1);
}

static void move(uint8_t dst, uint8_t src)
{
	(void)emit(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void load(uint8_t size, uint8_t dst, uint8_t src, int16_t off)
{
	(void)emit(BPF_LDX | BPF_MEM | size, dst, src, off, 0);
}

static void store(int16_t place, uint8_t src)
{
	(void)emit(BPF_STX | BPF_MEM | BPF_DW, STACK, src, place, 0);
}

static void store_one(int16_t place)
{
	(void)emit(BPF_ST | BPF_MEM | BPF_DW, STACK, 0, place, 1);
}

static void address(uint8_t dst, int16_t place)
{
	move(dst, STACK);
	(void)emit(BPF_ALU64 | BPF_ADD, dst, 0, 0, place);
}

static void call(int32_t function)
{
	(void)emit(BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* A function's first argument, in two instructions. */
static void pass_map(int map)
{
	(void)emit(BPF_LD | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map);
	(void)emit(0, 0, 0, 0, 0);
}

/* Looks the key up that lies at @place; register 0 is what was found, or 0. */
static void lookup(int map, int16_t place)
{
	pass_map(map);
	address(BPF_REG_2, place);
	call(BPF_FUNC_map_lookup_elem);
}

/* Puts 1 there. */
static void insert(int map, int16_t place)
{
	store_one(ONE);
	pass_map(map);
	address(BPF_REG_2, place);
	address(BPF_REG_3, ONE);
	(void)emit(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, BPF_ANY);
	call(BPF_FUNC_map_update_elem);
}

static void finish(void)
{
	(void)emit(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0);
	(void)emit(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* ---- The program that counts calls. */

/*
 * A thread loads a filter: if it is called gpushared, its process is the agent. (libseccomp asks
 * what there is before, with no filter; what sandbox_no_rings() loads is not for all threads.)
 */
static void program_begin(int agents)
{
	static const char name[12] = "gpushared";
	uint32_t other_name[3], no_load, not_all, no_filter;
	uint32_t not_seccomp = jump_unless(NUMBER, SYS_seccomp);

	load(BPF_DW, BPF_REG_1, RECORD, CALL_ARGUMENT(0));
	no_load = jump_unless(BPF_REG_1, SECCOMP_SET_MODE_FILTER);
	load(BPF_DW, BPF_REG_1, RECORD, CALL_ARGUMENT(1));
	(void)emit(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0, SECCOMP_FILTER_FLAG_TSYNC);
	not_all = jump_if(BPF_REG_1, 0);
	load(BPF_DW, BPF_REG_1, RECORD, CALL_ARGUMENT(2));
	no_filter = jump_if(BPF_REG_1, 0);
	address(BPF_REG_1, COMM);
	(void)emit(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 16);
	call(BPF_FUNC_get_current_comm);
	for (int i = 0; i < 3; i++) {
		int32_t part;

		memcpy(&part, name + 4 * i, sizeof(part));
		load(BPF_W, BPF_REG_1, STACK, (int16_t)(COMM + 4 * i));
		if (i == 2) /* behind its end there may be anything */
			(void)emit(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0, 0xffff);
		other_name[i] = jump_unless(BPF_REG_1, part);
	}
	insert(agents, PROCESS);
	for (int i = 0; i < 3; i++)
		land(other_name[i]);
	land(no_load);
	land(not_all);
	land(no_filter);
	finish();
	land(not_seccomp);
}

/* What processes do that are not the agent does not matter. */
static void program_whose(int agents)
{
	uint32_t known;

	lookup(agents, PROCESS);
	known = jump_unless(BPF_REG_0, 0);
	finish();
	land(known);
}

static void program_end(int agents)
{
	uint32_t same = jump_unless(NUMBER, SYS_execve);
	pass_map(agents);
	address(BPF_REG_2, PROCESS);
	call(BPF_FUNC_map_delete_elem);
	finish();
	land(same);
}

static void program_argument(void)
{
	static const struct {
		int32_t call;
		int argument;
	} looked_at[] = {
		{ SYS_socket, 0 }, { SYS_socketpair, 0 }, { SYS_prctl, 0 },    { SYS_clone, 0 },
		{ SYS_ioctl, 1 },  { SYS_mmap, 2 },	  { SYS_mprotect, 2 },
	};

	(void)emit(BPF_ALU64 | BPF_MOV | BPF_K, ARG, 0, 0, 0);
	for (size_t i = 0; i < sizeof(looked_at) / sizeof(looked_at[0]); i++) {
		uint32_t other = jump_unless(NUMBER, looked_at[i].call);

		load(BPF_DW, ARG, RECORD, (int16_t)CALL_ARGUMENT(looked_at[i].argument));
		land(other);
	}
}

static void program_count(int counts)
{
	uint32_t first;

	store(KEY, NUMBER);
	store(KEY + 8, ARG);
	lookup(counts, KEY);
	first = jump_if(BPF_REG_0, 0);
	(void)emit(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 1);
	(void)emit(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD);
	finish();
	land(first);
	insert(counts, KEY);
	finish();
}

static void program_start(void)
{
	len = 0;
	move(RECORD, BPF_REG_1);
	call(BPF_FUNC_get_current_pid_tgid);
	(void)emit(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32);
	store(PROCESS, BPF_REG_0);
}

static void program_calls(int agents, int counts)
{
	program_start();
	load(BPF_DW, NUMBER, RECORD, CALL_NUMBER);
	program_begin(agents);
	program_whose(agents);
	program_end(agents);
	program_argument();
	program_count(counts);
}

/* A SIGSYS from seccomp is a call that was refused, whoever it is that it is sent by. */
static void program_refused(int agents, int counts)
{
	uint32_t other_signal, other_code;

	program_start();
	load(BPF_W, BPF_REG_1, RECORD, SIGNAL_NUMBER);
	other_signal = jump_unless(BPF_REG_1, SIGSYS);
	load(BPF_W, BPF_REG_1, RECORD, SIGNAL_CODE);
	other_code = jump_unless(BPF_REG_1, SYS_SECCOMP);
	program_whose(agents);
	(void)emit(BPF_ALU64 | BPF_MOV | BPF_K, NUMBER, 0, 0, -1);
	(void)emit(BPF_ALU64 | BPF_MOV | BPF_K, ARG, 0, 0, 0);
	program_count(counts);
	land(other_signal);
	land(other_code);
	finish();
}

static int program_load(void)
{
	static char text[65536];
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_TRACEPOINT,
				.insns = (uintptr_t)prog,
				.insn_cnt = len,
				.license = (uintptr_t) "GPL",
				.log_buf = (uintptr_t)text,
				.log_size = sizeof(text),
				.log_level = 1 };
	int fd = (int)bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0) {
		int err = errno;

		(void)fputs(text, stderr);
		errno = err;
		die("BPF_PROG_LOAD");
	}
	return fd;
}

/* Runs on every processor, whatever the event says, until this process ends. */
static void attach(const char *id_file, int prog_fd)
{
	struct perf_event_attr event = { .type = PERF_TYPE_TRACEPOINT,
					 .size = sizeof(event),
					 .sample_period = 1 };
	FILE *f = fopen(id_file, "re");
	unsigned long long id;
	int fd;

	if (!f || fscanf(f, "%llu", &id) != 1)
		die(id_file);
	(void)fclose(f);
	event.config = id;
	fd = (int)syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		die("the perf event");
}

static void print(int counts)
{
	struct key key, *before = NULL;
	uint64_t times, refused = 0;
	union bpf_attr attr = { .map_fd = (uint32_t)counts };

	for (;;) {
		attr.key = (uintptr_t)before;
		attr.next_key = (uintptr_t)&key;
		if (bpf(BPF_MAP_GET_NEXT_KEY, &attr) < 0)
			break;
		attr.key = (uintptr_t)&key;
		attr.value = (uintptr_t)&times;
		if (bpf(BPF_MAP_LOOKUP_ELEM, &attr) < 0)
			die("BPF_MAP_LOOKUP_ELEM");
		if (key.call == REFUSED)
			refused = times;
		else
			printf("## call %llu %llu %llu\n", (unsigned long long)key.call,
			       (unsigned long long)key.argument, (unsigned long long)times);
		before = &key;
	}
	printf("## refused %llu\n", (unsigned long long)refused);
}

int main(int argc, char **argv)
{
	/* Before 5.11 the memory of BPF counted as locked. */
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	int agents, counts, sig;
	sigset_t term;

	if (argc != 2) {
		(void)fputs("usage: agentcalls READY\n", stderr);
		return 2;
	}
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	agents = make_map(sizeof(uint64_t), 65536);
	counts = make_map(sizeof(struct key), 4096);
	program_calls(agents, counts);
	attach(EVENTS "raw_syscalls/sys_enter/id", program_load());
	program_refused(agents, counts);
	attach(EVENTS "signal/signal_generate/id", program_load());
	if (open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0)
		die(argv[1]);
	(void)sigwait(&term, &sig);
	print(counts);
	return 0;
}
