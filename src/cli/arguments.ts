/** Parses the values of command-line options, and adds options that many commands have. */
import { type Command, InvalidArgumentError } from 'commander'

/** Maximum number of workers; each opens up to 21 database connections. */
const MOST_WORKERS = 64

export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

export function parseWorkers(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > MOST_WORKERS)
    throw new InvalidArgumentError(`Must be a whole number from 1 to ${MOST_WORKERS}`)
  return count
}

export function parseName(text: string): string {
  const name = text.trim()
  if (name === '' || [...name].length > 200 || /[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)) {
    throw new InvalidArgumentError('Must be 1 to 200 characters without line breaks or control characters')
  }
  return name
}

/** Returns Unix seconds or `never`. Does not return null, which Commander replaces with an empty string. */
export function parseTime(text: string): number | 'never' {
  if (text === 'never') return text
  const milliseconds = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  if (Number.isNaN(milliseconds))
    throw new InvalidArgumentError(
      'Must be a UTC date, a time with its zone such as 2030-01-31T12:00Z, or never',
    )
  return Math.floor(milliseconds / 1000)
}

/** Returns Unix seconds. */
export function parseMoment(text: string): number {
  const seconds = parseTime(text)
  if (seconds !== 'never') return seconds
  throw new InvalidArgumentError('Must be a UTC date, or a time with its zone such as 2030-01-31T12:00Z')
}

export function parseCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Must be a whole number of 1 or more')
}

export function parseOwnLimit(text: string): number | 'none' {
  if (text === 'none') return text
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new InvalidArgumentError('Must be a whole number of 1 or more, or none')
  return Number(text)
}

export function parseOverlap(text: string): number {
  const seconds = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds <= 2_592_000)) throw new InvalidArgumentError('Must be from 0 to 2592000 seconds')
  return seconds
}
