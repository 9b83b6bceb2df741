/** Colors as browsers understand them. */
import type { Hex } from './contrast.ts'

/** `#rrggbb` for a color of CSS without transparency; undefined for anything else. */
export function toHex(color: string): Hex | undefined {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 1
  const context = canvas.getContext('2d', { willReadFrequently: true })
  if (context === null || !CSS.supports('color', color)) return undefined
  context.fillStyle = color
  context.fillRect(0, 0, 1, 1)
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data
  if (alpha !== 255) return undefined
  return `#${[red, green, blue].map((part = 0) => part.toString(16).padStart(2, '0')).join('')}`
}
