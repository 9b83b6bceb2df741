/** Lists a folder's TypeScript files and their imports. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

/** An import in a file; paths are relative to the source folder. */
export interface Import {
  readonly from: string
  /** A file in the folder, or a package and its path. */
  readonly to: string
  readonly isOwn: boolean
  /** True for an import that exists only at compile time. */
  readonly isTypeOnly: boolean
  /** True for `import('…')`, which loads a file on demand. */
  readonly isDynamic: boolean
}

const statement = /^(?:import|export)\s+(type\s+)?(?:([^'";]*?)\s+from\s+)?'([^']+)'/gm
const dynamic = /\bimport\(\s*'([^']+)'/g

export function listSourceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .sort()
}

export function readSource(folder: string, path: string): string {
  return readFileSync(join(folder, path), 'utf8')
}

/** Lists every import in the folder: static, re-exporting, dynamic and in types (`import('./x.ts').Y`). */
export function listImports(folder: string): Import[] {
  return listSourceFiles(folder).flatMap((from) => {
    const text = readSource(folder, from)
    const statements = [...text.matchAll(statement)].map(([, type, names = '', target = '']) => ({
      target,
      isTypeOnly: type !== undefined || namesTypesOnly(names),
      isDynamic: false,
    }))
    const calls = [...text.matchAll(dynamic)].map(([, target = '']) => ({
      target,
      isTypeOnly: false,
      isDynamic: true,
    }))
    return [...statements, ...calls].map(({ target, isTypeOnly, isDynamic }) => {
      const isOwn = target.startsWith('.')
      return { from, to: isOwn ? posix.join(dirname(from), target) : target, isOwn, isTypeOnly, isDynamic }
    })
  })
}

/** Returns whether every name in `{ type A, type B }` is a type. */
function namesTypesOnly(names: string): boolean {
  const listed = (/^\{([^}]*)\}$/.exec(names.trim())?.[1] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  return listed.length > 0 && listed.every((name) => name.startsWith('type '))
}
