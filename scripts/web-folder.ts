/**
 * Replaces a browser build's output folder in one step, so that a starting server never finds an incomplete
 * build.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestSources, type webBuilds } from './web-sources.mjs'

// Test runners set NODE_ENV to `test`, which must not affect the build.
process.env.NODE_ENV = 'production'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** Builds into a new folder, which then replaces the old one; `write` fills it and returns the manifest. */
export async function replaceBuild(
  build: (typeof webBuilds)[keyof typeof webBuilds],
  write: (folder: string) => Promise<object>,
): Promise<void> {
  const target = join(root, build.target)
  const fresh = `${target}.${process.pid}`
  await mkdir(fresh, { recursive: true })
  try {
    // Computes the digest first, so that a source changed during the build makes the result stale.
    const sources = digestSources(root, build)
    const manifest = { sources, ...(await write(fresh)) }
    await writeFile(join(fresh, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    await rm(target, { recursive: true, force: true })
    await rename(fresh, target)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
