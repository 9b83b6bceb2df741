/** Reads the headers of a form's part: its name, its file name and its character set (RFC 7578, RFC 8187). */
import { isUtf8 } from 'node:buffer'
import type { ServiceError } from '../lib/errors.ts'
import { badPart } from './form-body.ts'

/** Header values by lower-case name, one character per byte. */
export type PartHeader = Readonly<Record<string, readonly string[] | undefined>>

export interface PartHead {
  /** Empty if the part has no name. */
  readonly name: string
  readonly filename: string | undefined
  readonly charset: string
}

interface HeaderValue {
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
}

/** The head of a part, or undefined if the part is not a form field. */
export function readPartHead(header: PartHeader): PartHead | undefined {
  const { type, parameters } = parseHeaderValue(header['content-disposition']?.[0] ?? '')
  if (type !== 'form-data') return undefined
  const name = readText(parameters, 'name', () =>
    badPart('The form has a field whose name is not valid text; encode names in UTF-8.'),
  )
  const filename = readText(parameters, 'filename', () =>
    badPart('the file name is not valid text; encode it in UTF-8', name || undefined),
  )
  const contentType = parseHeaderValue(header['content-type']?.[0] ?? '')
  return { name: name ?? '', filename, charset: contentType.parameters.get('charset') ?? 'utf-8' }
}

/** Splits `type; name=value; name="value"`. Accepts unquoted spaces and a missing closing quote, as some clients send them. */
export function parseHeaderValue(text: string): HeaderValue {
  const parameters = new Map<string, string>()
  const [type = ''] = text.split(';', 1)
  for (const [, name = '', value = ''] of text
    .slice(type.length)
    .matchAll(/;\s*([^\s;="]+)\s*=((?:"(?:[^"\\]|\\.)*"?|[^";])*)/gs)) {
    if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), unquote(value.trim()))
  }
  return { type: type.trim().toLowerCase(), parameters }
}

/**
 * Decodes bytes of a part.
 * @throws TypeError or RangeError if they are not text in this charset, or the charset is unknown.
 */
export function decodeStrictly(bytes: Uint8Array, charset: string): string {
  return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(bytes)
}

/** A backslash escapes only a quote or itself: some browsers send paths with single backslashes. */
function unquote(value: string): string {
  return value.replace(/"((?:[^"\\]|\\.)*)"?/gs, (_all, inner: string) => inner.replace(/\\(["\\])/g, '$1'))
}

/** A parameter as text; its extended form (`name*=UTF-8''...`) wins over the plain one. */
function readText(
  parameters: ReadonlyMap<string, string>,
  name: string,
  refuse: () => ServiceError,
): string | undefined {
  const extended = parameters.get(`${name}*`)
  const plain = parameters.get(name)
  if (extended === undefined && plain === undefined) return undefined
  const text = extended === undefined ? decodePlain(plain ?? '') : decodeExtended(extended)
  if (text === undefined || /[\r\n]/.test(text)) throw refuse()
  return text
}

function decodePlain(value: string): string | undefined {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

function decodeExtended(value: string): string | undefined {
  const [, charset = 'utf-8', encoded = ''] = /^([^']*)'[^']*'(.*)$/s.exec(value) ?? [value, undefined, value]
  const binary = encoded.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  try {
    return decodeStrictly(Buffer.from(binary, 'latin1'), charset)
  } catch {
    return undefined
  }
}
