/** Provides every page's layout: header, navigation and notices. */
import {
  ActionIcon,
  AppShell,
  CloseButton,
  Drawer,
  Group,
  type MantineColorScheme,
  Menu,
  Skeleton,
  Stack,
  Text,
  useMantineColorScheme,
} from '@mantine/core'
import { useDisclosure, useNetwork } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { isSignedOut } from '../failure.ts'
import { FailureNotice } from './FailureNotice.tsx'
import { Icon, type IconName } from './icons.tsx'
import { KeySwitch } from './KeySwitch.tsx'
import { SignedOutPage, SignInAgain } from './SignIn.tsx'
import { meQuery, useMe } from './use-me.ts'

export function Shell() {
  const { data: me, error, refetch } = useQuery(meQuery)
  if (error !== null && me === undefined && isSignedOut(error))
    return <SignedOutPage retry={() => void refetch()} />
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 216, breakpoint: 'sm', collapsed: { mobile: true } }}
      padding={{ base: 'md', sm: 'lg' }}
    >
      <a className="skip-link" href="#content">
        Skip to content
      </a>
      <AppShell.Header>
        <Head isKnown={me !== undefined} />
      </AppShell.Header>
      <AppShell.Navbar p="sm" visibleFrom="sm">
        {me === undefined ? <Loading what="the pages" rows={5} height={36} /> : <Navigation />}
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <FailureNotice />
        {me !== undefined ? <Outlet /> : null}
        {me === undefined && error === null ? <Loading what="the console" /> : null}
        {me === undefined && error !== null ? (
          <Failed error={error} what="The console" retry={() => void refetch()} />
        ) : null}
      </AppShell.Main>
      <OfflineNotice />
      {me === undefined ? null : <SignInAgain />}
    </AppShell>
  )
}

function Head({ isKnown }: { readonly isKnown: boolean }) {
  return (
    <Group h="100%" px="md" justify="space-between" wrap="nowrap">
      <Group gap="xs" wrap="nowrap">
        {isKnown ? <PhoneNavigation /> : <Skeleton w={34} h={34} hiddenFrom="sm" />}
        <Link to="/agents" className="brand">
          Parley
        </Link>
      </Group>
      <Group gap="xs" wrap="nowrap">
        <ThemeSwitch />
        {isKnown ? <KeySwitch /> : <Skeleton w={96} h={36} />}
      </Group>
    </Group>
  )
}

function PhoneNavigation() {
  const [isOpen, { open, close }] = useDisclosure(false)
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        hiddenFrom="sm"
        aria-label="Open menu"
        onClick={open}
      >
        <Icon name="menu" />
      </ActionIcon>
      <Drawer.Root opened={isOpen} onClose={close} size={260}>
        <Drawer.Overlay />
        <Drawer.Content>
          <Drawer.Body>
            <Group justify="space-between" mb="sm">
              <Drawer.Title fw={600}>Pages</Drawer.Title>
              <CloseButton aria-label="Close menu" onClick={close} />
            </Group>
            <Navigation onFollow={close} />
          </Drawer.Body>
        </Drawer.Content>
      </Drawer.Root>
    </>
  )
}

const entries = [
  { to: '/agents', label: 'Agents', icon: 'agents' },
  { to: '/conversations', label: 'Conversations', icon: 'conversations' },
  { to: '/keys', label: 'Keys', icon: 'keys' },
  { to: '/usage', label: 'Usage', icon: 'usage' },
  { to: '/uploads', label: 'Uploads', icon: 'uploads' },
  { to: '/files', label: 'Files', icon: 'files' },
] as const satisfies readonly { to: string; label: string; icon: IconName }[]

const administration = { to: '/admin', label: 'Administration', icon: 'admin' } as const

function Navigation({ onFollow }: { readonly onFollow?: () => void }) {
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

const choices: readonly { scheme: MantineColorScheme; label: string; icon: IconName }[] = [
  { scheme: 'light', label: 'Light', icon: 'sun' },
  { scheme: 'dark', label: 'Dark', icon: 'moon' },
  { scheme: 'auto', label: 'System', icon: 'system' },
]

function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const current = choices.find(({ scheme }) => scheme === colorScheme)
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Theme: ${current?.label}`}>
          <Icon name={current?.icon ?? 'system'} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {choices.map(({ scheme, label, icon }) => (
          <Menu.Item
            key={scheme}
            leftSection={<Icon name={icon} size={16} />}
            rightSection={scheme === colorScheme ? <Icon name="check" size={16} /> : null}
            onClick={() => setColorScheme(scheme)}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

function OfflineNotice() {
  const { online } = useNetwork()
  if (online) return null
  return (
    <Group role="status" gap="xs" justify="center" p={6} className="offline-notice">
      <Icon name="offline" size={16} />
      <Text size="sm">You are offline. Data may be out of date, and changes cannot be saved.</Text>
    </Group>
  )
}
