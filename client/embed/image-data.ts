/** Reads an image file as a data URL that fits into a definition. */
import { renderSize } from '../format.ts'
import { t } from '../strings/language.ts'

/** Maximum length of a data URL in `embed.theme` (docs/agents.md). */
const MAX_LENGTH = 32_768
/** Base64 needs four characters for three bytes. */
const MAX_BYTES = Math.floor((MAX_LENGTH - 'data:image/svg+xml;base64,'.length) / 4) * 3

export const imageTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/svg+xml']

/** Longest sides in pixels to which a large image is scaled, until it fits. */
const SIDES = [256, 160, 96]

/**
 * Returns the file as a data URL; scales images that are too large. Throws an error with a message for the
 * user if the file is not an image, or does not fit.
 */
export async function readImage(file: File): Promise<string> {
  if (!imageTypes.includes(file.type)) throw new Error(t('embed.wrongImage'))
  if (file.size <= MAX_BYTES) return toDataUrl(file)
  const scaled = file.type === 'image/svg+xml' ? undefined : await scale(file)
  if (scaled !== undefined) return scaled
  throw new Error(t('embed.largeImage', { limit: renderSize(MAX_BYTES), size: renderSize(file.size) }))
}

export function sizeOfDataUrl(url: string): number {
  const characters = url.slice(url.indexOf(',') + 1).replace(/=+$/, '').length
  return Math.floor((characters * 3) / 4)
}

async function toDataUrl(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
  return `data:${file.type};base64,${btoa(text)}`
}

/** Returns undefined if no size fits. */
async function scale(file: File): Promise<string | undefined> {
  const image = await createImageBitmap(file).catch(() => {
    throw new Error(t('embed.unreadableImage'))
  })
  const urls = SIDES.map((side) => draw(image, Math.min(1, side / Math.max(image.width, image.height))))
  image.close()
  return urls.find((url) => url.length <= MAX_LENGTH)
}

/** Returns the scaled image as a WebP data URL, or as PNG in browsers that cannot encode WebP. */
function draw(image: ImageBitmap, factor: number): string {
  const canvas = document.createElement('canvas')
  canvas.width = Math.max(1, Math.round(image.width * factor))
  canvas.height = Math.max(1, Math.round(image.height * factor))
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
  return canvas.toDataURL('image/webp', 0.9)
}
