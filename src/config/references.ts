/** Puts the values of environment variables where the texts of the configuration file refer to them. */
import type { Path } from '../lib/formats/json.ts'

/** Environment variables; one that is not set is undefined. */
export type Variables = Readonly<Record<string, string | undefined>>

/** What is wrong with a file, and the way to the key it is wrong at. */
export interface Fault {
  readonly path: Path
  readonly problem: string
}

/** The references of one file. */
export interface References {
  /** The value with every reference in its texts replaced; `$${` is left as `${`. What cannot be replaced becomes a fault. */
  resolve(value: unknown, path?: Path): unknown
  readonly faults: readonly Fault[]
  /** The variables referred to so far. */
  readonly names: ReadonlySet<string>
}

/** An escaped opening, a reference, or an opening that is neither. */
const openings = /\$\$\{|\$\{([A-Za-z_]\w*)\}|\$\{/g

export function createReferences(variables: Variables): References {
  const faults: Fault[] = []
  const names = new Set<string>()

  function resolveText(text: string, path: Path): string {
    return text.replaceAll(openings, (opening, name: string | undefined) => {
      if (opening === '$${') return '${'
      if (name === undefined) {
        faults.push({ path, problem: 'has a ${ that names no variable; $${ stands for the characters ${' })
        return ''
      }
      names.add(name)
      const held = Object.hasOwn(variables, name) ? variables[name] : undefined
      if (held === undefined) faults.push({ path, problem: `refers to ${name}, which is not set` })
      return held ?? ''
    })
  }

  function resolve(value: unknown, path: Path = []): unknown {
    if (typeof value === 'string') return resolveText(value, path)
    if (Array.isArray(value)) return value.map((item, index) => resolve(item, [...path, index]))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, held]) => [key, resolve(held, [...path, key])]),
    )
  }

  return { resolve, faults, names }
}
