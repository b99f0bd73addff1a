// SPDX-License-Identifier: GPL-2.0-only
/* A fault may hold the lock of its mapping instead of the whole memory's (6.4, named so in 6.6). */
#include <linux/mm.h>

void use(struct vm_fault *vmf)
{
	release_fault_lock(vmf);
}
