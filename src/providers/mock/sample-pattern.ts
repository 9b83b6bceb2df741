/**
 * Writes a text that a regular expression matches, for the `pattern` of a JSON Schema. The expression is read, never run: it
 * comes from a caller, and running it could take for ever. Security: 2.6.
 */

interface Reader {
  readonly pattern: string
  at: number
  readonly variant: number
  /** How often more than needed an open-ended repetition repeats. */
  readonly extraRepeats: number
  isUnsupported: boolean
}

const maxDepth = 50
const maxLength = 100_000
const maxPatternLength = 1000
const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index))
const classes: Readonly<Record<string, string>> = {
  d: '0123456789',
  w: 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_',
  s: ' ',
}
const controls: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', 0: '\0' }

/**
 * Writes a text of at least `shortest` characters that matches; other variants differ where the expression leaves a choice.
 * Undefined for what is not supported: back references, positive look-around, Unicode properties.
 */
export function samplePattern(pattern: string, variant: number, shortest: number): string | undefined {
  let [tooFew, enough] = [-1, shortest]
  let found: string | undefined
  // The text never gets shorter with more repeats, so the fewest that suffice can be searched by halving.
  while (tooFew < enough) {
    const extraRepeats = Math.floor((tooFew + 1 + enough) / 2)
    const text = readPattern(pattern, variant, extraRepeats)
    if (text !== undefined && text.length < shortest) {
      tooFew = extraRepeats
    } else {
      found = text
      enough = extraRepeats - 1
    }
  }
  return found
}

function readPattern(pattern: string, variant: number, extraRepeats: number): string | undefined {
  const reader: Reader = {
    pattern,
    at: 0,
    variant,
    extraRepeats,
    isUnsupported: pattern.length > maxPatternLength,
  }
  const text = readAlternatives(reader, 0)
  return reader.isUnsupported || reader.at < pattern.length ? undefined : text
}

/** Reads `a|b|c` and answers with a text for `a`. */
function readAlternatives(reader: Reader, depth: number): string {
  if (depth > maxDepth) reader.isUnsupported = true
  const first = readSequence(reader, depth)
  while (!reader.isUnsupported && reader.pattern[reader.at] === '|') {
    reader.at += 1
    readSequence(reader, depth)
  }
  return first
}

function readSequence(reader: Reader, depth: number): string {
  let text = ''
  while (!reader.isUnsupported && reader.at < reader.pattern.length) {
    const next = reader.pattern[reader.at]
    if (next === '|' || next === ')') break
    const atom = readAtom(reader, depth)
    const times = readRepeats(reader)
    if (text.length + atom.length * times > maxLength) reader.isUnsupported = true
    else text += atom.repeat(times)
  }
  return text
}

function readAtom(reader: Reader, depth: number): string {
  const character = reader.pattern[reader.at] ?? ''
  reader.at += 1
  if (character === '^' || character === '$') return ''
  if (character === '.') return pick(classes.w ?? '', reader)
  if (character === '(') return readGroup(reader, depth)
  if (character === '[') return readClass(reader)
  if (character !== '\\') return character
  const escaped = readEscape(reader)
  return escaped === '' ? '' : pick(escaped, reader)
}

function readGroup(reader: Reader, depth: number): string {
  const opening = /\?(?::|<?[=!]|<\w{1,64}>)/y
  opening.lastIndex = reader.at
  const kind = opening.exec(reader.pattern)?.[0] ?? ''
  if (kind.endsWith('=') || (kind === '' && reader.pattern[reader.at] === '?')) reader.isUnsupported = true
  reader.at += kind.length
  const text = readAlternatives(reader, depth + 1)
  if (reader.pattern[reader.at] !== ')') reader.isUnsupported = true
  reader.at += 1
  // What must not follow is left out: an ordinary text rarely is what such a group forbids.
  return kind.endsWith('!') ? '' : text
}

/** Reads `{2,5}`, `*`, `+` and `?`; answers how often to repeat what stands before it. */
function readRepeats(reader: Reader): number {
  const quantifier = /(?:([*+?])|\{(\d{1,6})(,?)(\d{0,6})\})\??/y
  quantifier.lastIndex = reader.at
  const match = quantifier.exec(reader.pattern)
  if (match === null) return 1
  reader.at += match[0].length
  const [, sign, fewest, comma, most] = match
  const least = sign === undefined ? Number(fewest) : Number(sign === '+')
  if (sign === '?' || (sign === undefined && comma === '')) return least
  const limit = most === undefined || most === '' ? Number.POSITIVE_INFINITY : Number(most)
  return Math.min(least + reader.extraRepeats, limit)
}

/** Reads what follows a backslash; answers the characters it may stand for, none for a word boundary. */
function readEscape(reader: Reader): string {
  const character = reader.pattern[reader.at] ?? ''
  reader.at += 1
  const code = /^(?:u([0-9a-f]{4})|x([0-9a-f]{2}))/i.exec(reader.pattern.slice(reader.at - 1, reader.at + 4))
  if (code !== null) {
    reader.at += code[0].length - 1
    return String.fromCharCode(Number.parseInt(code[1] ?? code[2] ?? '', 16))
  }
  if (character === 'b' || character === 'B') return ''
  if (Object.hasOwn(classes, character)) return classes[character] ?? ''
  if (Object.hasOwn(controls, character)) return controls[character] ?? ''
  if ('DWS'.includes(character)) return without(classes[character.toLowerCase()] ?? '')
  if (/[1-9ckpPux]/.test(character) || character === '') reader.isUnsupported = true
  return character
}

/** Reads a class such as `[A-Za-z_]`; answers one of its characters. */
function readClass(reader: Reader): string {
  const isNegated = reader.pattern[reader.at] === '^'
  if (isNegated) reader.at += 1
  let members = ''
  while (reader.at < reader.pattern.length && reader.pattern[reader.at] !== ']' && !reader.isUnsupported) {
    const from = readMember(reader)
    const isRange = reader.pattern[reader.at] === '-' && !']'.includes(reader.pattern[reader.at + 1] ?? ']')
    if (isRange) reader.at += 1
    members += isRange ? spread(from, readMember(reader)) : from
  }
  reader.at += 1
  return pick(isNegated ? without(members) : members, reader)
}

function readMember(reader: Reader): string {
  const character = reader.pattern[reader.at] ?? ''
  reader.at += 1
  return character === '\\' ? readEscape(reader) : character
}

/** The first characters of a range, enough for every variant anybody asks for. */
function spread(from: string, to: string): string {
  const first = from.charCodeAt(0)
  const count = Math.min(Math.max(to.charCodeAt(0) - first + 1, 0), 256)
  return String.fromCharCode(...Array.from({ length: count }, (_, index) => first + index))
}

function without(members: string): string {
  return [...printable].filter((character) => !members.includes(character)).join('')
}

function pick(members: string, reader: Reader): string {
  const member = members[reader.variant % members.length] ?? ''
  // Half of a surrogate pair is no character.
  if (!member.isWellFormed() || member === '') reader.isUnsupported = true
  return member
}
