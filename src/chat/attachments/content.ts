/** Recognizes the type of an attachment by its content. */

export interface DataUrl {
  readonly mediaType: string
  readonly base64: string
}

/** Number of base64 characters at the start of a file that are decoded to recognize its type. */
const HEAD_LENGTH = 64

/** Returns undefined if the text is not a data URL with valid base64. */
export function parseDataUrl(text: string): DataUrl | undefined {
  const comma = text.slice(0, 100).indexOf(',')
  const [, mediaType] = /^data:([a-z]+\/[a-z.+-]+);base64$/.exec(text.slice(0, Math.max(comma, 0))) ?? []
  const base64 = text.slice(comma + 1)
  if (mediaType === undefined || base64.length % 4 !== 0) return undefined
  return /^[A-Za-z0-9+/]+={0,2}$/.test(base64) ? { mediaType, base64 } : undefined
}

/** Returns the size of a data URL's content in bytes, without decoding it. */
export function decodedBytes(url: string): number {
  const base64 = url.length - url.indexOf(',') - 1
  const padding = url.endsWith('==') ? 2 : url.endsWith('=') ? 1 : 0
  return Math.max(0, Math.floor((base64 * 3) / 4) - padding)
}

const signatures: Readonly<Record<string, (head: string) => boolean>> = {
  'image/png': (head) => head.startsWith('\x89PNG\r\n\x1a\n'),
  'image/jpeg': (head) => head.startsWith('\xff\xd8\xff'),
  'image/gif': (head) => head.startsWith('GIF87a') || head.startsWith('GIF89a'),
  'image/webp': (head) => head.startsWith('RIFF') && head.startsWith('WEBP', 8),
}

/** Returns whether the content is an image of the URL's media type. */
export function isImage({ mediaType, base64 }: DataUrl): boolean {
  return signatures[mediaType]?.(headOf(base64)) === true
}

export function isPdf({ mediaType, base64 }: DataUrl): boolean {
  return mediaType === 'application/pdf' && headOf(base64).startsWith('%PDF-')
}

/**
 * Returns false if the text contains an ASCII control character other than tab, line feed, form feed and
 * carriage return.
 */
export function isText(text: string): boolean {
  return !/[^\P{Cc}\t\n\f\r\u0080-\u009F]/u.test(text)
}

/** Returns the first bytes, each as one character. */
function headOf(base64: string): string {
  return Buffer.from(base64.slice(0, HEAD_LENGTH), 'base64').toString('latin1')
}
