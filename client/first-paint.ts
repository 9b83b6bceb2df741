/** Sets the color scheme before the first paint, so that a dark page does not flash white. */

function readChoice(): string | null {
  try {
    return localStorage.getItem('parley-color-scheme')
  } catch {
    return null
  }
}

const choice = readChoice()
const isChosen = choice === 'light' || choice === 'dark'
const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
document.documentElement.dataset.mantineColorScheme = isChosen ? choice : system
