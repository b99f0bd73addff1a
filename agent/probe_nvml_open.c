// SPDX-License-Identifier: Apache-2.0
/* Finds and loads a library with NVML's functions. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/nvml.h"
#include "agent/probe.h"
#include "agent/probe_nvml.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* Each as the newest of its versions that the library has; the first four must be there. */
static const struct {
	size_t at;
	const char *names[3];
} symbols[] = {
#define F(member) offsetof(struct nvml_functions, member)
	{ F(init), { "nvmlInit_v2", "nvmlInit" } },
	{ F(count), { "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount" } },
	{ F(by_index), { "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex" } },
	{ F(uuid), { "nvmlDeviceGetUUID" } },
	{ F(shutdown), { "nvmlShutdown" } },
	{ F(error), { "nvmlErrorString" } },
	{ F(serial), { "nvmlDeviceGetSerial" } },
	{ F(pci),
	  { "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo" } },
	{ F(minor_number), { "nvmlDeviceGetMinorNumber" } },
	{ F(utilization), { "nvmlDeviceGetUtilizationRates" } },
	{ F(memory), { "nvmlDeviceGetMemoryInfo" } },
	{ F(memory_v2), { "nvmlDeviceGetMemoryInfo_v2" } },
	{ F(samples), { "nvmlDeviceGetProcessUtilization" } },
	{ F(mig_mode), { "nvmlDeviceGetMigMode" } },
	{ F(mig_max), { "nvmlDeviceGetMaxMigDeviceCount" } },
	{ F(mig_by_index), { "nvmlDeviceGetMigDeviceHandleByIndex" } },
	{ F(gpu_instance), { "nvmlDeviceGetGpuInstanceId" } },
	{ F(compute_instance), { "nvmlDeviceGetComputeInstanceId" } },
#undef F
};

static const char *const lists[] = { "nvmlDeviceGetComputeRunningProcesses",
				     "nvmlDeviceGetGraphicsRunningProcesses",
				     "nvmlDeviceGetMPSComputeRunningProcesses" };

static void find_processes(struct nvml *nvml)
{
	static const char *const endings[] = { "_v3", "_v2", "" };

	/* One layout for all three, so all of the newest ending that the first one has. */
	for (size_t i = 0; i < GS_ARRAY_SIZE(endings); i++) {
		for (size_t j = 0; j < GS_ARRAY_SIZE(lists); j++) {
			cleanup_free char *name = gs_asprintf("%s%s", lists[j], endings[i]);
			void *f = dlsym(nvml->library, name);

			memcpy(&nvml->f.processes[j], &f, sizeof(f));
		}
		nvml->processes_v1 = !endings[i][0];
		if (nvml->f.processes[0])
			return;
	}
}

static int find_symbols(struct nvml *nvml, const char *library, struct gs_err *err)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(symbols); i++) {
		void *f = NULL;

		for (size_t j = 0; j < 3 && symbols[i].names[j] && !f; j++)
			f = dlsym(nvml->library, symbols[i].names[j]);
		if (!f && i < 4)
			return gs_err_set(err, ENOSYS, "%s has no %s()", library,
					  symbols[i].names[0]);
		memcpy((char *)&nvml->f + symbols[i].at, &f, sizeof(f));
	}
	find_processes(nvml);
	return 0;
}

/* Where a library is below the root of a driver that came in a container. */
static void *open_below(const char *root, const char *library)
{
	static const char *const folders[] = { "/usr/lib64", "/usr/lib/x86_64-linux-gnu",
					       "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/lib64" };
	void *ret = NULL;

	for (size_t i = 0; i < GS_ARRAY_SIZE(folders) && !ret; i++) {
		cleanup_free char *path = gs_asprintf("%s%s/%s", root, folders[i], library);
		cleanup_free char *real = probe_path(path);

		if (access(real, R_OK) == 0)
			ret = dlopen(real, RTLD_NOW | RTLD_LOCAL);
	}
	return ret;
}

int probe_nvml_open(const struct vendor_side *side, const char *library, struct nvml **ret,
		    struct gs_err *err)
{
	const struct gs_strv *roots = &vendor_side_rules(side)->roots;
	struct nvml *nvml = gs_calloc(1, sizeof(*nvml));
	const char *why;
	int r;

	if (library[0] == '/') {
		cleanup_free char *real = probe_path(library);

		nvml->library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
	} else {
		nvml->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	}
	why = nvml->library ? NULL : dlerror();
	r = why ? gs_err_set(err, ENOENT, "%s", why) : 0;
	for (size_t i = 0; library[0] != '/' && !nvml->library && i < roots->n; i++)
		if (roots->v[i][0])
			nvml->library = open_below(roots->v[i], library);
	if (nvml->library)
		r = find_symbols(nvml, library, err);
	if (r < 0) {
		probe_nvml_free(nvml);
		return r;
	}
	*ret = nvml;
	return 0;
}

void probe_nvml_free(struct nvml *nvml)
{
	if (!nvml)
		return;
	if (nvml->initialised && nvml->f.shutdown)
		(void)nvml->f.shutdown();
	if (nvml->library)
		(void)dlclose(nvml->library);
	free(nvml);
}

const char *nvml_error(const struct nvml *nvml, int code)
{
	const char *text = nvml->f.error ? nvml->f.error(code) : NULL;

	return text ? text : "an error without a text";
}
