// SPDX-License-Identifier: Apache-2.0
/* gpusharectl doctor: kernel, module, Secure Boot, cgroups. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/klink.h"
#include "common/kname.h"
#include "common/xalloc.h"
#include "ctl/doctor.h"
#include "ctl/root.h"

#define MODULE "/sys/module/gpushare"
#define SOURCES "/usr/src/gpushare-" GPUSHARE_VERSION

void doctor_kernel(struct doctor *d)
{
	unsigned long major = 0, minor = 0;
	char *end = NULL;

	d->release = root_line(d->root, "/proc/sys/kernel/osrelease");
	if (d->release)
		major = strtoul(d->release, &end, 10);
	if (end && *end == '.')
		minor = strtoul(end + 1, NULL, 10);
	if (!major)
		doctor_note(d, NULL, "the kernel's version is not known");
	else if (major < 5 || (major == 5 && minor < 10))
		doctor_wrong(d,
			     gs_strdup("boot a kernel of 5.10 or newer; sharing works, lending "
				       "does not"),
			     "%s is older than 5.10, the first one that the module is built for",
			     d->release);
	else
		doctor_ok(d, "%s", d->release);
}

void doctor_tracing(struct doctor *d)
{
	cleanup_free char *enabled = root_line(d->root, "/proc/sys/kernel/ftrace_enabled");

	if (!enabled)
		doctor_wrong(d,
			     gs_strdup("boot a kernel with CONFIG_DYNAMIC_FTRACE and "
				       "CONFIG_FUNCTION_TRACER"),
			     "this kernel has no ftrace: no driver can be hooked, nothing is lent");
	else if (strcmp(enabled, "1") != 0)
		doctor_wrong(d,
			     gs_strdup("sysctl -w kernel.ftrace_enabled=1   # and in "
				       "/etc/sysctl.d, where somebody switches it off"),
			     "ftrace is switched off: no driver can be hooked");
	else
		doctor_ok(d, "ftrace is on");
	if (!root_has(d->root, "/sys/kernel/tracing/enabled_functions") &&
	    !root_has(d->root, "/sys/kernel/debug/tracing/enabled_functions"))
		doctor_note(d, gs_strdup("mount -t tracefs tracefs /sys/kernel/tracing"),
			    "tracefs is not mounted: nobody can look up what else hooks a driver");
}

/* ---- The module. */

static void keep_first(const char *path, void *arg)
{
	char **first = arg;

	if (!*first)
		*first = gs_strdup(path);
}

/* The module's file for the running kernel; NULL: there is none. */
static char *module_file(const struct doctor *d)
{
	static const char *const places[] = {
		"updates/dkms",	       "updates", "extra",	 "kernel/extra",
		"kernel/drivers/misc", "misc",	  "weak-updates"
	};
	char *first = NULL;

	for (size_t i = 0; d->release && i < GS_ARRAY_SIZE(places); i++) {
		cleanup_free char *pattern =
			gs_asprintf("/lib/modules/%s/%s/gpushare.ko*", d->release, places[i]);

		root_glob(d->root, pattern, keep_first, &first);
	}
	return first;
}

static char *reload(void)
{
	return gs_strdup("systemctl stop gpushared && modprobe -r gpushare && modprobe gpushare && "
			 "systemctl start gpushared   # what is lent is taken back");
}

void doctor_ask_module(struct doctor *d)
{
	cleanup_klink struct gs_klink *link = NULL;
	struct gs_kstatus status = { 0 };
	struct gs_err err = { 0 };
	int r = gs_klink_open(&link, &err);

	if (r == 0)
		r = gs_klink_status(link, &status, &err);
	if (r == -EPROTONOSUPPORT)
		doctor_wrong(d, reload(), "%s", err.msg);
	else if (r == -EPERM || r == -EACCES)
		doctor_note(d, gs_strdup("sudo gpusharectl doctor"), "can't ask it: %s", err.msg);
	else if (r < 0)
		doctor_wrong(d, reload(), "it is there, but does not answer: %s", err.msg);
	for (unsigned int bit = 0; r == 0 && bit < gs_kname_features(); bit++)
		if (!(status.features & 1U << bit) && gs_kname_feature_lack(bit))
			doctor_note(d, NULL, "this kernel lacks %s: %s", gs_kname_feature(bit),
				    gs_kname_feature_lack(bit));
}

void doctor_module(struct doctor *d)
{
	cleanup_free char *version = root_line(d->root, MODULE "/version");
	cleanup_free char *file = NULL;

	if (!root_has(d->root, MODULE)) {
		file = module_file(d);
		if (file)
			doctor_wrong(d, gs_strdup("modprobe gpushare"),
				     "the kernel module is not loaded: nothing is lent");
		else
			doctor_wrong(d,
				     gs_asprintf("%sdkms install gpushare/" GPUSHARE_VERSION
						 " -k %s && modprobe gpushare",
						 root_has(d->root, SOURCES) ?
							 "" :
							 "install the package gpushare-dkms, or: "
							 "make install-dkms; then: ",
						 d->release ? d->release : "$(uname -r)"),
				     "the kernel module is not loaded, and there is none for this "
				     "kernel: nothing is lent");
		return;
	}
	if (version && strcmp(version, GPUSHARE_VERSION) != 0)
		doctor_note(d, reload(), "the module is of version %s, gpusharectl of %s", version,
			    GPUSHARE_VERSION);
	else
		doctor_ok(d, "loaded%s%s", version ? ", version " : "", version ? version : "");
	if (strcmp(d->root, "/") == 0)
		doctor_ask_module(d);
}

/* ---- Secure Boot. */

static bool secure_boot(const struct doctor *d)
{
	cleanup_close int fd = gs_file_open_in(
		d->root,
		"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		O_RDONLY);
	unsigned char value[5]; /* four bytes of attributes come first */

	return fd >= 0 && read(fd, value, sizeof(value)) == sizeof(value) && value[4] == 1;
}

/* 1: the file ends in a signature; 0: it does not; -1: compressed, or it can't be read. */
static int is_signed(const struct doctor *d, const char *file)
{
	static const char magic[] = "~Module signature appended~\n";
	cleanup_close int fd = gs_file_open_in(d->root, file, O_RDONLY);
	size_t len = strlen(file);
	char end[sizeof(magic) - 1];
	off_t size;

	if (fd < 0 || strcmp(file + len - 3, ".ko") != 0)
		return -1;
	size = lseek(fd, 0, SEEK_END);
	if (size < (off_t)sizeof(end))
		return 0;
	if (pread(fd, end, sizeof(end), size - (off_t)sizeof(end)) != sizeof(end))
		return -1;
	return memcmp(end, magic, sizeof(end)) == 0;
}

#define ENROLL "mokutil --import /var/lib/dkms/mok.pub; then reboot, and enroll it"

void doctor_secure_boot(struct doctor *d)
{
	/* DKMS signs when it builds, and makes the key then. */
	static const char sign[] =
		"with openssl installed: dkms build --force gpushare/" GPUSHARE_VERSION
		" && dkms install --force gpushare/" GPUSHARE_VERSION " && " ENROLL;
	cleanup_free char *lockdown = root_line(d->root, "/sys/kernel/security/lockdown");
	cleanup_free char *enforce =
		root_line(d->root, "/sys/module/module/parameters/sig_enforce");
	cleanup_free char *file = NULL;
	bool on = secure_boot(d) || (lockdown && !strstr(lockdown, "[none]")) ||
		  (enforce && enforce[0] == 'Y');

	if (!on) {
		doctor_ok(d, "the kernel takes modules without a signature");
		return;
	}
	file = root_has(d->root, MODULE) ? NULL : module_file(d);
	if (!file)
		doctor_ok(d, "the kernel takes signed modules only%s",
			  root_has(d->root, MODULE) ? ", and took ours" : "");
	else if (is_signed(d, file) == 0)
		doctor_wrong(d, gs_strdup(sign),
			     "the kernel takes signed modules only, and %s has no signature", file);
	else
		/* DKMS is content with a key that nobody enrolled */
		doctor_note(d, gs_strdup(ENROLL),
			    "the kernel takes signed modules only; where modprobe says \"Key was "
			    "rejected by service\", the key of %s is not enrolled",
			    file);
}

/* ---- Cgroups. */

void doctor_cgroup(struct doctor *d)
{
	char *kill = NULL;

	if (root_has(d->root, "/sys/fs/cgroup/cgroup.controllers")) {
		root_glob(d->root, "/sys/fs/cgroup/*/cgroup.kill", keep_first, &kill);
		if (kill)
			doctor_ok(d, "version 2, with cgroup.kill");
		else
			doctor_note(d, NULL,
				    "version 2 without cgroup.kill (5.14): borrowers are killed "
				    "process by process");
		free(kill);
	} else if (root_has(d->root, "/sys/fs/cgroup/devices/cgroup.procs")) {
		doctor_ok(d, "version 1");
	} else {
		doctor_wrong(d, gs_strdup("mount -t cgroup2 cgroup2 /sys/fs/cgroup"),
			     "there is neither a version 2 hierarchy in /sys/fs/cgroup nor version "
			     "1's devices: no container can be told from another");
	}
}
