/** Makes the types that the compiler wrote fit for others: what the entries of the package lead to, named as it lies there. */
import { glob, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'

/** `from './x'`, `import './x'` and `import('./x')`, in either kind of quotes. */
const ownImport = /\b(from\s+|import\s*\(?\s*)(['"])(\.{1,2}\/[^'"\n]+?)\.ts\2/g

/** Keeps the types that these entries (paths in the folder) need, and removes the others. */
export async function finishTypes(folder: string, entries: readonly string[]): Promise<void> {
  const needed = new Set<string>()
  const queue = entries.map((path) => normalize(path))
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (needed.has(path)) continue
    needed.add(path)
    queue.push(...(await nameImports(folder, path)))
  }
  for await (const path of glob('**/*.d.ts', { cwd: folder })) {
    if (!needed.has(path)) await rm(join(folder, path))
  }
}

/** The compiler leaves the ending of the source in them, which not everybody who reads types understands; answers with what is imported. */
async function nameImports(folder: string, path: string): Promise<string[]> {
  const text = await readFile(join(folder, path), 'utf8')
  const imported = [...text.matchAll(ownImport)].map(([, , , stem]) => join(dirname(path), `${stem}.d.ts`))
  await writeFile(join(folder, path), text.replaceAll(ownImport, '$1$2$3.js$2'))
  return imported
}
