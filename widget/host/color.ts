/** Colors as browsers understand them: any CSS color becomes six digits, with the text color that can be read on it. */

/** `#rrggbb` for a color of CSS without transparency; undefined for anything else. */
export function toHex(color: string): string | undefined {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 1
  const context = canvas.getContext('2d', { willReadFrequently: true })
  if (context === null || !isColor(context, color)) return undefined
  context.fillStyle = color
  context.fillRect(0, 0, 1, 1)
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data
  if (alpha !== 255) return undefined
  return `#${[red, green, blue].map((part = 0) => part.toString(16).padStart(2, '0')).join('')}`
}

/** A canvas keeps the color it has when it is given something else. */
function isColor(context: CanvasRenderingContext2D, color: string): boolean {
  const taken = ['#000', '#fff'].map((before) => {
    context.fillStyle = before
    context.fillStyle = color
    return context.fillStyle
  })
  return taken[0] === taken[1]
}

/** Black or white, whichever stands out more. Protocol: WCAG 2.2, relative luminance. */
export function readableOn(hex: string): '#000000' | '#ffffff' {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  return (luminance + 0.05) ** 2 > 0.05 * 1.05 ? '#000000' : '#ffffff'
}
