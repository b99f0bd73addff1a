// SPDX-License-Identifier: Apache-2.0
/* gpusharectl kmod: looks at the kernel module and drives it by hand. */
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/kname.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/kmod.h"

/* How many folders nftw(3) keeps open. */
#define OPEN_MAX_DIRS 8

int ctl_kmod_open(struct gs_klink **ret)
{
	struct gs_err err = { 0 };

	if (gs_klink_open(ret, &err) == 0)
		return CTL_OK;
	if (err.code == ENOENT)
		(void)gs_err_set(&err, ENOENT, "%s",
				 "kernel module gpushare is not loaded "
				 "(modprobe gpushare)");
	return ctl_failed(&err);
}

/* ---- Names of device numbers: the paths in /dev, read once. */

static struct named {
	uint32_t dev;
	char *path;
} * named;
static size_t n_named;

static const char *name_dev(uint32_t dev, const char *path)
{
	named = gs_grow(named, n_named, sizeof(*named));
	named[n_named] = (struct named){ .dev = dev, .path = gs_strdup(path) };
	return named[n_named++].path;
}

static int see_node(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && S_ISCHR(st->st_mode))
		(void)name_dev(gs_kdev_of(st->st_rdev), path);
	return 0;
}

const char *ctl_kmod_dev(uint32_t dev)
{
	static bool read;
	char text[32];

	/* /dev/shm, /dev/pts and the like are file systems of their own, and hold no cards. */
	if (!read)
		(void)nftw("/dev", see_node, OPEN_MAX_DIRS, FTW_PHYS | FTW_MOUNT);
	read = true;
	for (size_t i = 0; i < n_named; i++)
		if (named[i].dev == dev)
			return named[i].path;
	(void)snprintf(text, sizeof(text), "%u:%u", gs_kdev_major(dev), gs_kdev_minor(dev));
	return name_dev(dev, text);
}

json_t *ctl_kmod_dev_json(uint32_t dev)
{
	return json_sprintf("%u:%u", gs_kdev_major(dev), gs_kdev_minor(dev));
}

char *ctl_kmod_funcs(uint32_t funcs)
{
	struct gs_buf text = { 0 };

	for (unsigned int kind = 0; kind < 32; kind++)
		if (funcs & 1U << kind)
			gs_buf_addf(&text, "%s%s", text.len ? "," : "", gs_kname_kind(kind));
	return gs_buf_steal(&text);
}

/* ---- Lines of what goes on. */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ctl_kmod_line(uint64_t ns, const char *fmt, ...)
{
	uint64_t boot = clock_ns(CLOCK_BOOTTIME);
	/* What the clock on the wall showed then, had nobody set it since. */
	time_t at = (time_t)((clock_ns(CLOCK_REALTIME) - boot + (ns ? ns : boot)) / 1000000000);
	char when[16], line[GS_ERR_MAX];
	struct tm tm;
	va_list ap;

	(void)strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&at, &tm));
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	printf("%s %s\n", when, ctl_printable(line));
	(void)fflush(stdout);
}

void ctl_kmod_json_line(json_t *json)
{
	(void)json_dumpf(json, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	(void)putchar('\n');
	(void)fflush(stdout);
	json_decref(json);
}

/* ---- The verb. */

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} parts[] = {
	{ "status", ctl_kmod_status },
	{ "watch", ctl_kmod_watch },
	{ "events", ctl_kmod_events },
};

static int run(int argc, char **argv)
{
	if (argc < 2)
		return ctl_misused(&ctl_kmod, "kmod what: status, watch or events?");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return ctl_help(&ctl_kmod);
	for (size_t i = 0; i < GS_ARRAY_SIZE(parts); i++)
		if (strcmp(argv[1], parts[i].name) == 0)
			return parts[i].run(argc - 1, argv + 1);
	return ctl_misused(&ctl_kmod, "kmod has no %s", argv[1]);
}

const struct ctl_verb ctl_kmod = {
	.name = "kmod",
	.summary = "look at the kernel module, or try it by hand",
	.help = "usage: gpusharectl kmod status [-o json]\n"
		"       gpusharectl kmod watch NODE... --pid PID|--cgroup FOLDER\n"
		"                              [--lend-after TIME] [--name NAME]\n"
		"       gpusharectl kmod events [-f] [-n COUNT] [-o json]\n"
		"\n"
		"Speaks to gpushare.ko itself, with no agent. As root.\n"
		"\n"
		"status  version, what this kernel lacks, the agent, totals, and tables of the\n"
		"        device nodes that are hooked, the holdings and the watches\n"
		"  -o json            JSON instead\n"
		"\n"
		"watch   hooks the drivers of the device nodes, counts the touches of one\n"
		"        container and says when it is idle, until ^C; then takes away what it\n"
		"        has made\n"
		"  --pid PID          the container of that process: its PID namespace\n"
		"  --cgroup FOLDER    the container of that cgroup, below /sys/fs/cgroup\n"
		"  --lend-after TIME  without a touch for so long it is idle, such as 30s or\n"
		"                     10m; otherwise the module's default\n"
		"  --name NAME        of holding and watch; otherwise ctl- and a number\n"
		"\n"
		"events  a line for each event of the module, until ^C; goes on when the module\n"
		"        is loaded again\n"
		"  -f, --follow       what it does in any case\n"
		"  -n, --count COUNT  ends after so many events\n"
		"  -o json            one JSON object a line instead\n"
		"\n"
		"Example: gpusharectl kmod watch /dev/nvidiactl /dev/nvidia0 /dev/nvidia-uvm \\\n"
		"    --pid \"$(docker inspect -f '{{.State.Pid}}' dev)\" --lend-after 30s\n",
	.run = run,
};
