/** Sets the document's title, with the number of waiting conversations before it. */
let page = 'Parley'
let count = 0

export function setPageTitle(title: string): void {
  page = `${title} · Parley`
  render()
}

/** Shows the number before the title, so that the browser's tab shows it too; 0 shows no number. */
export function setTitleCount(number: number): void {
  count = number
  render()
}

function render(): void {
  document.title = count === 0 ? page : `(${count}) ${page}`
}
