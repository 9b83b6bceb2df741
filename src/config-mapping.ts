/** Mappings of the configuration file: their keys are known, and an unknown one is named with the nearest. */
import { z } from 'zod'
import { orMissing } from './config-values.ts'
import { nearestName } from './nearest-name.ts'

/** A mapping of these keys and no others. */
export function mappingOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const unknownKey = z.custom<never>(() => false, {
    error: ({ path }) =>
      `is not a key here; the nearest is ${nearestName(String(path?.at(-1)), Object.keys(shape))}`,
  })
  return z.object(shape, { error: orMissing('must be a mapping') }).catchall(unknownKey)
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What is wrong with the name of an entry that operators name themselves; undefined when nothing is. */
export function findNameProblem(name: string): string | undefined {
  return /^[a-z0-9][a-z0-9_-]{0,31}$/.test(name)
    ? undefined
    : 'a name must be 1 to 32 small letters, digits, - and _, the first a letter or digit'
}
