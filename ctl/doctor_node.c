// SPDX-License-Identifier: Apache-2.0
/* gpusharectl doctor: permissions, the kubelet's sockets, the agent. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "ctl/doctor.h"
#include "ctl/picture.h"
#include "ctl/root.h"
#include "gpushare/agent.h"
#include "gpushare/grant.h"

/* ---- Permissions. */

/* Root's, or in a node's copy the caller's. */
static bool is_roots(const struct doctor *d, uid_t uid)
{
	return uid == 0 || (strcmp(d->root, "/") != 0 && uid == geteuid());
}

/* A folder of ours, which the parts of gpushare refuse where others may write to it. */
static void check_folder(struct doctor *d, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0) {
		if (errno != ENOENT)
			doctor_note(d, gs_strdup("sudo gpusharectl doctor"), "%s: %s", path,
				    strerror(errno));
		return;
	}
	if (!S_ISDIR(st.st_mode))
		doctor_wrong(d, gs_asprintf("rm %s", path), "%s is no folder", path);
	else if (!is_roots(d, st.st_uid))
		doctor_wrong(d, gs_asprintf("chown root: %s", path), "%s is not root's", path);
	else if (st.st_mode & 077)
		doctor_wrong(d, gs_asprintf("chmod 0700 %s", path),
			     "%s is open to others (mode %04o): %s", path, st.st_mode & 07777,
			     st.st_mode & 022 ? "nothing in it is believed" :
						"grants' names are secrets");
}

/* A file or folder that anybody may read, and nobody but root write. */
static void check_write(struct doctor *d, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	if (!is_roots(d, st.st_uid))
		doctor_wrong(d, gs_asprintf("chown root: %s", path), "%s is not root's", path);
	else if (st.st_mode & 022)
		doctor_wrong(d, gs_asprintf("chmod go-w %s", path),
			     "others may write to %s (mode %04o)", path, st.st_mode & 07777);
}

void doctor_permissions(struct doctor *d)
{
	cleanup_free char *grants = gs_asprintf("%s/" GS_GRANT_DIR, d->config.lib_dir);
	cleanup_free char *binary = root_path(d->root, d->node.binary);
	cleanup_free char *hook = root_path(d->root, d->config.hook);
	size_t before = d->n;

	check_folder(d, d->config.run_dir);
	check_folder(d, d->config.lib_dir);
	check_folder(d, grants);
	check_write(d, d->config.path);
	check_write(d, binary);
	check_write(d, hook);
	for (size_t i = 0; i < d->config.vendor_dirs.n; i++)
		check_write(d, d->config.vendor_dirs.v[i]);
	if (d->n == before)
		doctor_ok(d, "%s and %s are root's alone", d->config.run_dir, d->config.lib_dir);
}

/* ---- The kubelet. */

/* Does the configuration name the API server? An agent in a pod finds it by itself. */
static bool names_api_server(const struct doctor *d)
{
	cleanup_json json_t *root = json_load_file(d->config.path, 0, NULL);

	return json_object_get(json_object_get(root, "agent"), "kubernetes") != NULL;
}

void doctor_kubelet(struct doctor *d)
{
	static const struct {
		const char *path, *what;
	} sockets[] = {
		{ "/var/lib/kubelet/pod-resources/kubelet.sock",
		  "who was given which card is not known" },
		{ "/var/lib/kubelet/device-plugins/kubelet.sock",
		  "no device plugin can offer cards" },
	};
	cleanup_close int seen = gs_file_open_in(d->root, sockets[0].path, O_PATH);
	size_t before = d->n;
	struct stat st;

	if (seen == -EACCES) {
		doctor_note(d, gs_strdup("sudo gpusharectl doctor"), "its sockets can't be seen");
		return;
	}
	if (!root_has(d->root, "/var/lib/kubelet")) {
		doctor_ok(d, "there is none here");
		return;
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(sockets); i++)
		if (!root_stat(d->root, sockets[i].path, &st) || !S_ISSOCK(st.st_mode))
			doctor_wrong(d, gs_strdup("systemctl restart kubelet"), "no socket %s: %s",
				     sockets[i].path, sockets[i].what);
	if (d->n == before)
		doctor_ok(d, "its sockets for pod resources and device plugins are there");
	if (d->config_ok && !names_api_server(d))
		doctor_note(
			d, gs_strdup("agent.kubernetes in gpushare-config(5); docs/controller.md"),
			"the configuration names no API server: an agent that is no pod deletes no "
			"borrower's pod, and kubectl gpushare lacks this node");
}

/* ---- The agent. */

void doctor_agent(struct doctor *d)
{
	cleanup_strv struct gs_strv problems = { 0 };
	cleanup_picture struct picture pic = { 0 };
	struct gs_err err = { 0 };
	int r = picture_ask(&d->config, &pic, &err);

	if (r == -EACCES || r == -EPERM) {
		doctor_note(d, gs_strdup("sudo gpusharectl doctor"), "can't ask it: %s", err.msg);
		return;
	}
	if (r < 0) {
		doctor_wrong(
			d, gs_strdup("systemctl enable --now gpushared && journalctl -u gpushared"),
			"%s; nothing is lent meanwhile", err.msg);
		return;
	}
	picture_problems(&pic, &problems);
	for (size_t i = 0; i < problems.n; i++)
		doctor_wrong(d,
			     gs_strdup("gpusharectl status; \"Lending: looking and steering\" in "
				       "docs/operator.md"),
			     "%s", problems.v[i]);
	if (!problems.n)
		doctor_ok(d, "answers at %s/" GS_AGENT_SOCKET, d->config.run_dir);
}
