/** Tells whether the built widget is that of the present sources. Plain JavaScript, because the set-up runs it on any Node. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the built widget lies below the repository. */
export const builtFolder = 'dist/widget'

/** What the build depends on besides the folder `widget`. */
const otherSources = ['scripts/build-widget.ts', 'package-lock.json']

/** A digest of everything the built widget is made from; undefined where there is no widget to build. */
export function digestSources(root) {
  const names = listFiles(root, 'widget')
  if (names.length === 0) return undefined
  const digest = createHash('sha256')
  for (const name of [...names, ...otherSources]) {
    digest.update(`${name}\n`).update(readFileSync(join(root, name)))
  }
  return digest.digest('hex')
}

/** Whether there is a built widget, and nothing it was made from has changed since. */
export function isWidgetBuilt(root) {
  const digest = digestSources(root)
  return digest === undefined || digest === readBuiltDigest(root)
}

function readBuiltDigest(root) {
  try {
    return JSON.parse(readFileSync(join(root, builtFolder, 'manifest.json'), 'utf8')).sources
  } catch {
    return undefined
  }
}

function listFiles(root, folder) {
  try {
    const entries = readdirSync(join(root, folder), { withFileTypes: true })
    return entries
      .flatMap((entry) =>
        entry.isDirectory() ? listFiles(root, `${folder}/${entry.name}`) : [`${folder}/${entry.name}`],
      )
      .sort()
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}
