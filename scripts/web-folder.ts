/**
 * Replaces the output folder of a browser build in one step, so that a server that starts during a build finds a
 * complete one.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestSources, type webBuilds } from './web-sources.mjs'

// Test runners set NODE_ENV to `test`, which must not influence the build.
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
    // The digest is computed first, so that a source that changes during the build makes the result stale.
    const sources = digestSources(root, build)
    const manifest = { sources, ...(await write(fresh)) }
    await writeFile(join(fresh, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    await rm(target, { recursive: true, force: true })
    await rename(fresh, target)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
