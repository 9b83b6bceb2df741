/** The pages of the console. */
import { Stack } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Icon, type IconName } from './icons.tsx'
import { useMe } from './use-me.ts'

const entries = [
  { to: '/agents', label: 'Agents', icon: 'agents' },
  { to: '/keys', label: 'Keys', icon: 'keys' },
  { to: '/usage', label: 'Usage', icon: 'usage' },
  { to: '/uploads', label: 'Uploads', icon: 'uploads' },
  { to: '/files', label: 'Files', icon: 'files' },
] as const satisfies readonly { to: string; label: string; icon: IconName }[]

const administration = { to: '/admin', label: 'Administration', icon: 'admin' } as const

/** `onFollow` is called when somebody goes somewhere. */
export function Navigation({ onFollow }: { readonly onFollow?: () => void }) {
  const { is_administrator: isAdministrator } = useMe()
  const shown = isAdministrator ? [...entries, administration] : entries
  return (
    <Stack component="nav" aria-label="Pages" gap={4}>
      {shown.map(({ to, label, icon }) => (
        <Link key={to} to={to} className="navigation-link" onClick={onFollow}>
          <Icon name={icon} />
          {label}
        </Link>
      ))}
    </Stack>
  )
}
