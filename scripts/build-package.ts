/**
 * Builds the npm package in `dist/package`: JavaScript, its types, and every file that the service reads (ADR
 * 0035).
 */
import { spawnSync } from 'node:child_process'
import { cp, glob, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { listTypes, type OwnManifest, renderManifest } from './package-manifest.ts'
import { root } from './web-folder.ts'

const target = join(root, 'dist/package')
const fresh = `${target}.${process.pid}`

/** Compiles a project; the compiler prints its own errors. @throws Error if it fails. */
function compile(project: string, folder: string): void {
  const words = [join(root, 'node_modules/typescript/bin/tsc'), '-p', project, '--outDir', folder]
  const { status } = spawnSync(process.execPath, words, { cwd: root, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`${project} does not compile`)
}

async function copy(path: string): Promise<void> {
  await mkdir(dirname(join(fresh, path)), { recursive: true })
  await cp(join(root, path), join(fresh, path), { recursive: true })
}

async function fill(): Promise<void> {
  compile('tsconfig.build.json', fresh)
  // Copied because pages load these files unchanged; the compiler would convert them to modules.
  for await (const path of glob('src/**/*.{js,css,svg}', { cwd: root })) await copy(path)
  for await (const path of glob(['docs/*.md', 'examples/webhook-*.mjs'], { cwd: root })) await copy(path)
  const files = ['openapi.json', 'prices/prices.json', 'README.md', 'CHANGELOG.md', 'LICENSE', 'NOTICE']
  for (const path of ['dist/console', 'dist/widget', 'dist/docs', ...files]) await copy(path)
  compile('widget/tsconfig.build.json', join(fresh, 'dist/widget/types'))
  const own = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as OwnManifest
  const manifest = renderManifest(own)
  await finishTypes(fresh, listTypes(manifest))
  await writeFile(join(fresh, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

/** Matches `from './x'`, `import './x'` and `import('./x')`, with single or double quotes. */
const ownImport = /\b(from\s+|import\s*\(?\s*)(['"])(\.{1,2}\/[^'"\n]+?)\.ts\2/g

/** Removes type files that the entries do not need. Entries are paths within the folder. */
async function finishTypes(folder: string, entries: readonly string[]): Promise<void> {
  const needed = new Set<string>()
  const queue = entries.map((path) => normalize(path))
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (needed.has(path)) continue
    needed.add(path)
    queue.push(...(await renameImports(folder, path)))
  }
  for await (const path of glob('**/*.d.ts', { cwd: folder })) {
    if (!needed.has(path)) await rm(join(folder, path))
  }
}

/**
 * Changes the `.ts` extension in imports to `.js`, which every TypeScript version resolves; returns the
 * imported files.
 */
async function renameImports(folder: string, path: string): Promise<string[]> {
  const text = await readFile(join(folder, path), 'utf8')
  const imported = [...text.matchAll(ownImport)].map(([, , , stem]) => join(dirname(path), `${stem}.d.ts`))
  await writeFile(join(folder, path), text.replaceAll(ownImport, '$1$2$3.js$2'))
  return imported
}

try {
  await fill()
  await rm(target, { recursive: true, force: true })
  await rename(fresh, target)
} finally {
  await rm(fresh, { recursive: true, force: true })
}
