/** Reads which file of `src` imports what, so that tests can hold the walls between its folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

export const sourceFolder = fileURLToPath(new URL('../../src/', import.meta.url))

/** One import of one file. */
export interface Import {
  /** The importing file, from `src` on: `keys/store.ts`. */
  readonly from: string
  /** A file from `src` on, or the name of a package with its path. */
  readonly to: string
  readonly isOwn: boolean
  /** Whether nothing but types is imported: it is gone when the program runs. */
  readonly isTypeOnly: boolean
}

/** Every TypeScript file of `src`. */
export function listSourceFiles(): string[] {
  const entries = readdirSync(sourceFolder, { recursive: true, encoding: 'utf8' })
  return entries
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .sort()
}

export function readSource(path: string): string {
  return readFileSync(join(sourceFolder, path), 'utf8')
}

const statement = /^(?:import|export)\s+(type\s+)?(?:([^'";]*?)\s+from\s+)?'([^']+)'/gm
const dynamic = /\bimport\(\s*'([^']+)'/g

/** Every import in `src`, static, re-exporting and dynamic. */
export function listImports(): Import[] {
  return listSourceFiles().flatMap((from) => {
    const text = readSource(from)
    const statements = [...text.matchAll(statement)].map(([, type, names, target]) => ({
      target: target as string,
      isTypeOnly: type !== undefined || hasTypesOnly(names ?? ''),
    }))
    const calls = [...text.matchAll(dynamic)].map(([, target]) => ({
      target: target as string,
      isTypeOnly: false,
    }))
    return [...statements, ...calls].map(({ target, isTypeOnly }) => {
      const isOwn = target.startsWith('.')
      return { from, to: isOwn ? posix.join(dirname(from), target) : target, isOwn, isTypeOnly }
    })
  })
}

function hasTypesOnly(names: string): boolean {
  const [, inBraces] = /^\{([^}]*)\}$/.exec(names.trim()) ?? []
  const listed =
    inBraces
      ?.split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '') ?? []
  return listed.length > 0 && listed.every((name) => name.startsWith('type '))
}
