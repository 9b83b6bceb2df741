/** Colors as browsers understand them: any CSS color becomes six digits. */

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
