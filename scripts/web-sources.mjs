/**
 * Finds browser builds that are older than their sources. Plain JavaScript, because setup runs it on any Node
 * version.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The browser builds: source folder, build script, output folder, and other files that affect the result. */
export const webBuilds = {
  widget: {
    source: 'widget',
    script: 'scripts/build-widget.ts',
    target: 'dist/widget',
    others: ['scripts/web-folder.ts', 'package-lock.json'],
  },
  console: {
    source: 'client',
    script: 'scripts/build-console.ts',
    target: 'dist/console',
    others: ['scripts/web-folder.ts', 'package-lock.json', 'widget/messages.ts', 'widget/frame/contrast.ts'],
  },
  docs: {
    source: 'docs',
    script: 'scripts/build-docs.ts',
    target: 'dist/docs',
    others: ['scripts/web-folder.ts', 'scripts/heading-anchor.ts', 'package-lock.json'],
  },
}

/** Returns a digest of a build's sources, or undefined without sources, as in the npm package. */
export function digestSources(root, { source, script, others }) {
  const names = listFiles(root, source)
  if (names.length === 0) return undefined
  const digest = createHash('sha256')
  for (const name of [...names, script, ...others]) {
    digest.update(`${name}\n`).update(readIfPresent(join(root, name)))
  }
  return digest.digest('hex')
}

/** Lists builds that are missing or older than their sources. */
export function listStaleBuilds(root) {
  return Object.values(webBuilds).filter((build) => {
    const digest = digestSources(root, build)
    return digest !== undefined && digest !== readBuiltDigest(root, build)
  })
}

/**
 * Reads a file; returns an empty string if it does not exist, because the build itself reports a missing
 * source and its importer.
 */
function readIfPresent(path) {
  return existsSync(path) ? readFileSync(path) : ''
}

function readBuiltDigest(root, { target }) {
  try {
    return JSON.parse(readFileSync(join(root, target, 'manifest.json'), 'utf8')).sources
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
