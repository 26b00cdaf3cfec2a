/* SPDX-License-Identifier: MIT */
/* Code objects of a CUDA process: the images that its driver announced, relocated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/cuda/cuda.h"
#include "symbols/image.h"

/* @return the module that an object is; the URI is for people, and names none. */
static struct cuda_module *module_of(struct target_cuda *c, const struct code_object *o)
{
	for (size_t i = 0; i < c->n_modules; i++)
		if (c->modules[i].number == o->tag)
			return &c->modules[i];
	return NULL;
}

void cuda_module_deinit(struct cuda_module *m)
{
	values_kernels_deinit(&m->kernels);
	mbarrier_sites_deinit(&m->mbarriers);
	spin_sites_deinit(&m->spins);
	nccl_functions_deinit(&m->nccl);
}

static void forget_image(struct target_cuda *c)
{
	free(c->image);
	c->image = NULL;
	c->image_size = 0;
}

/* Copy a module's image; the driver copies images as a whole only. */
static int load_image(struct target_cuda *c, const struct cuda_module *m)
{
	int r;

	if (c->image && c->image_number == m->number && c->image_version == m->version)
		return 0;
	forget_image(c);
	if (!c->shim)
		return -ESRCH;
	if (m->size > SYMBOLS_IMAGE_BYTES_MAX)
		return -EFBIG;
	c->image = malloc(m->size ? m->size : 1);
	if (!c->image)
		return -ENOMEM;
	r = cudbgshim_get_elf_image(c->shim, m->dev, m->handle, true, c->image, m->size);
	if (r < 0) {
		forget_image(c);
		return r;
	}
	c->image_size = m->size;
	c->image_number = m->number;
	c->image_version = m->version;
	return 0;
}

/* Addresses are in the section headers, at the end of the file: it is read once for them. */
static void find_range(struct target_cuda *c, struct cuda_module *m)
{
	struct symbols_image *image;

	m->seen = m->version;
	m->start = m->end = 0;
	cuda_module_deinit(m);
	m->error = load_image(c, m);
	if (m->error == 0)
		m->error = symbols_image_create(c->image, c->image_size, &image);
	if (m->error < 0)
		return;
	symbols_image_range(image, &m->start, &m->end);
	m->error = m->end ? 0 : -EADDRNOTAVAIL;
	if (m->error == 0)
		m->error = values_kernels_find(image, &m->kernels);
	if (m->error == 0)
		m->error = mbarrier_sites_find(image, c->devices[m->dev].d.arch, &m->mbarriers);
	if (m->error == 0)
		m->error = spin_sites_find(image, c->devices[m->dev].d.arch, &m->spins);
	if (m->error == 0)
		m->error = nccl_functions_find(image, &m->nccl);
	symbols_image_destroy(image);
}

void cuda_code_look(struct target_cuda *c, struct cuda_module *m)
{
	if (m->seen != m->version)
		find_range(c, m);
}

int cuda_code_list(struct target *t, struct rpc_arena *a, struct code_list *ret)
{
	struct target_cuda *c = cuda_of(t);

	ret->objects = rpc_arena_array(a, c->n_modules, sizeof(*ret->objects));
	if (!ret->objects)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_modules; i++) {
		struct cuda_module *m = &c->modules[i];

		cuda_code_look(c, m);
		ret->objects[i] = (struct code_object){
			.uri = rpc_arena_printf(a, "cuda://device/%u/module/0x%llx", m->dev,
						(unsigned long long)m->module),
			.tag = m->number,
			.start = m->start,
			.end = m->end,
		};
		if (!ret->objects[i].uri)
			return -ENOMEM;
	}
	ret->n_objects = c->n_modules;
	if (c->lost_news)
		ret->problem = "code objects: the process has loaded more than the agent keeps";
	return 0;
}

int cuda_code_stat(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	const struct cuda_module *m = module_of(cuda_of(t), o);

	if (!m)
		return -ESRCH;
	ret->size = m->size;
	ret->stamp = (uint64_t)m->version << 32 | m->number;
	return m->error;
}

ssize_t cuda_code_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf,
		       size_t size)
{
	struct target_cuda *c = cuda_of(t);
	const struct cuda_module *m = module_of(c, o);
	int r = m ? load_image(c, m) : -ESRCH;

	if (r < 0)
		return r;
	if (offset >= c->image_size)
		return 0;
	if (size > c->image_size - offset)
		size = c->image_size - offset;
	memcpy(buf, c->image + offset, size);
	return (ssize_t)size;
}

void cuda_code_done(struct target *t)
{
	forget_image(cuda_of(t));
}
