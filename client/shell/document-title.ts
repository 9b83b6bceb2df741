/** Sets the document's title, which starts with the number of waiting conversations. */
let page = 'Parley'
let count = 0

export function setPageTitle(title: string): void {
  page = `${title} · Parley`
  render()
}

/** Shows the number at the start of the title, so that the browser's tab shows it; 0 shows no number. */
export function setTitleCount(number: number): void {
  count = number
  render()
}

function render(): void {
  document.title = count === 0 ? page : `(${count}) ${page}`
}
