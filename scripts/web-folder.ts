/** Where a build for browsers lands: written aside first, so that a server that starts meanwhile finds the old one whole, or none. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestSources, type WebBuild } from './web-sources.mjs'

// A test runner calls its surroundings a test; what browsers get is the same all the same.
process.env.NODE_ENV = 'production'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** Fills a new folder with what `write` puts there and with its manifest, then puts it in the old one's place. */
export async function replaceBuild(
  build: WebBuild,
  write: (folder: string) => Promise<object>,
): Promise<void> {
  const target = join(root, build.target)
  const fresh = `${target}.${process.pid}`
  await mkdir(fresh, { recursive: true })
  try {
    // Taken first: a source that changes meanwhile is built again by whoever looks next.
    const sources = digestSources(root, build)
    const manifest = { sources, ...(await write(fresh)) }
    await writeFile(join(fresh, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    await rm(target, { recursive: true, force: true })
    await rename(fresh, target)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
