/** Which parts of the editor are shown, by the address and by how much room there is. */
import { useViewportSize } from '@mantine/hooks'
import { useNavigate, useSearch } from '@tanstack/react-router'

/** In pixels of the window: below, one pane at a time; above, three. */
const PHONE = 768
const WIDE = 1_560

export type View = 'both' | 'form' | 'yaml' | 'try'

export interface Panes {
  readonly view: View
  readonly choices: { value: View; label: string }[]
  readonly isPhone: boolean
  readonly isTrying: boolean
  readonly shows: Readonly<Record<'form' | 'yaml' | 'try', boolean>>
  setView(view: string): void
  toggleTry(): void
}

const labels: Readonly<Record<View, string>> = { both: 'Both', form: 'Form', yaml: 'YAML', try: 'Try it' }

export function usePanes(): Panes {
  const search: { view?: View; try?: boolean } = useSearch({ strict: false })
  const navigate = useNavigate()
  const width = useViewportSize().width || window.innerWidth
  const isPhone = width < PHONE
  const isTrying = search.try === true && !isPhone
  const choices = listChoices(isPhone, isTrying && width < WIDE)
  const view = choices.find((choice) => choice === search.view) ?? choices[0] ?? 'form'
  const set = (next: object) =>
    void navigate({ to: '.', search: (old: object) => ({ ...old, ...next }), replace: true })
  return {
    view,
    choices: choices.map((value) => ({ value, label: labels[value] })),
    isPhone,
    isTrying,
    shows: {
      form: view === 'both' || view === 'form',
      yaml: view === 'both' || view === 'yaml',
      try: isTrying || view === 'try',
    },
    setView: (next) => set({ view: next }),
    toggleTry: () => set({ try: isTrying ? undefined : true }),
  }
}

function listChoices(isPhone: boolean, isNarrow: boolean): View[] {
  if (isPhone) return ['form', 'yaml', 'try']
  return isNarrow ? ['form', 'yaml'] : ['both', 'form', 'yaml']
}
