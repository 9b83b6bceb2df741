/** Provides every page's layout: navigation, content and notices. */
import {
  ActionIcon,
  AppShell,
  CloseButton,
  Drawer,
  Group,
  Kbd,
  type MantineColorScheme,
  Menu,
  Skeleton,
  Stack,
  Text,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core'
import { useDisclosure, useNetwork } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { lazy, Suspense, useLayoutEffect, useRef } from 'react'
import { BudgetBadge } from '../budgets/BudgetNotice.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { isSignedOut } from '../failure.ts'
import { useStoredFirstRun } from '../first-run/first-run.ts'
import { renderNumber } from '../format.ts'
import { t } from '../strings/language.ts'
import { FailureNotice } from './FailureNotice.tsx'
import { Icon, type IconName } from './icons.tsx'
import { KeySwitch } from './KeySwitch.tsx'
import { LanguageMenu } from './LanguageMenu.tsx'
import { groups, keysAndAdministration } from './navigation.ts'
import { palette, usePageShortcuts } from './palette.ts'
import { SignedOutPage, SignInAgain } from './SignIn.tsx'
import { meQuery, useMe } from './use-me.ts'
import { useWaitingCount, useWaitingStream } from './waiting.ts'

/** Loads separately from the page's script, because the palette is hidden at first. */
const CommandPalette = lazy(async () => ({
  default: (await import('./CommandPalette.tsx')).CommandPalette,
}))

export function Shell() {
  const { data: me, error, refetch } = useQuery(meQuery)
  const isDesk = useLocation({ select: ({ pathname }) => /\/conversations(\/|$)/.test(pathname) })
  if (error !== null && me === undefined && isSignedOut(error))
    return <SignedOutPage retry={() => void refetch()} />
  return (
    <AppShell
      layout="alt"
      header={{ height: { base: 52, sm: 0 } }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: true } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <a className="skip-link" href="#content">
        {t('shell.skip')}
      </a>
      <AppShell.Header hiddenFrom="sm">
        <PhoneHeader isKnown={me !== undefined} />
      </AppShell.Header>
      <AppShell.Navbar visibleFrom="sm" className="sidebar">
        <Brand />
        {me === undefined ? <Loading what="pages" rows={6} height={32} /> : <Sidebar />}
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} data-desk={isDesk || undefined}>
        <div className="page">
          <FailureNotice />
          {me !== undefined ? <Outlet /> : null}
          {me === undefined && error === null ? <Loading what="console" /> : null}
          {me === undefined && error !== null ? (
            <Failed error={error} what="console" retry={() => void refetch()} />
          ) : null}
        </div>
      </AppShell.Main>
      <OfflineNotice />
      {me === undefined ? null : (
        <>
          <SignInAgain />
          <PageShortcuts />
          <WaitingStream />
          <Suspense>
            <CommandPalette />
          </Suspense>
        </>
      )}
    </AppShell>
  )
}

function PageShortcuts() {
  usePageShortcuts()
  return null
}

function Brand() {
  return (
    <Link to="/agents" className="brand">
      <Mark />
      Parley
    </Link>
  )
}

/** The mark of `src/design/mark.svg`, drawn inline so that it appears with the first paint. */
function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path
        fill="#fff"
        fillRule="evenodd"
        d="M8 14a8.5 8.5 0 1 1 8.5 8.5H12.6L8 27Zm8.5-4.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9Z"
      />
    </svg>
  )
}

function PhoneHeader({ isKnown }: { readonly isKnown: boolean }) {
  return (
    <Group h="100%" px="sm" justify="space-between" wrap="nowrap">
      <Group gap={4} wrap="nowrap">
        {isKnown ? <PhoneNavigation /> : <Skeleton w={34} h={34} />}
        <Brand />
      </Group>
      <Group gap={4} wrap="nowrap">
        <ThemeSwitch />
        {isKnown ? <KeySwitch /> : <Skeleton w={96} h={32} />}
      </Group>
    </Group>
  )
}

/** The navigation with the active key above it, and the links that every page shares below it. */
function Sidebar() {
  return (
    <>
      <KeySwitch isWide />
      <UnstyledButton className="search-button" onClick={palette.open}>
        <Icon name="search" size={16} />
        <span>{t('common.search')}</span>
        <Kbd size="xs">Ctrl K</Kbd>
      </UnstyledButton>
      <Navigation />
      <GetStartedLink />
      <Group className="sidebar-foot" gap={4} wrap="nowrap">
        <a className="navigation-link" href="/docs" target="_blank" rel="noreferrer">
          <Icon name="docs" size={16} />
          {t('shell.apiReference')}
        </a>
        <Group gap={0} wrap="nowrap">
          <LanguageMenu />
          <ThemeSwitch />
        </Group>
      </Group>
    </>
  )
}

function PhoneNavigation() {
  const [isOpen, { open, close }] = useDisclosure(false)
  return (
    <>
      <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('shell.openMenu')} onClick={open}>
        <Icon name="menu" />
      </ActionIcon>
      <Drawer.Root opened={isOpen} onClose={close} size={260}>
        <Drawer.Overlay />
        <Drawer.Content>
          <Drawer.Body>
            <Group justify="space-between" mb="sm">
              <Drawer.Title fw={600}>{t('shell.pages')}</Drawer.Title>
              <Group gap={4} wrap="nowrap">
                <LanguageMenu />
                <CloseButton aria-label={t('shell.closeMenu')} onClick={close} />
              </Group>
            </Group>
            <Navigation onFollow={close} />
            <GetStartedLink onFollow={close} />
          </Drawer.Body>
        </Drawer.Content>
      </Drawer.Root>
    </>
  )
}

function Navigation({ onFollow }: { readonly onFollow?: () => void }) {
  const { is_administrator: isAdministrator } = useMe()
  const access = { name: t('shell.access'), entries: keysAndAdministration(isAdministrator) }
  return (
    <nav aria-label={t('shell.pages')} className="navigation">
      {[...groups(), access].map(({ name, entries }) => (
        <Stack key={name ?? ''} gap={1}>
          {name === undefined ? null : <span className="navigation-heading">{name}</span>}
          {entries.map(({ to, label, icon }) => (
            <Link key={to} to={to} className="navigation-link" onClick={onFollow}>
              <Icon name={icon} size={16} />
              {label}
              {to === '/conversations' ? <WaitingBadge /> : null}
              {to === '/budgets' ? <BudgetBadge /> : null}
            </Link>
          ))}
        </Stack>
      ))}
    </nav>
  )
}

function WaitingBadge() {
  const count = useWaitingCount()
  if (count === 0) return null
  return (
    <span className="navigation-badge" title={t('conversations.waitingCount', { count })}>
      <span aria-hidden="true">{renderNumber(count)}</span>
      <span className="for-screen-readers">{t('conversations.waitingCount', { count })}</span>
    </span>
  )
}

/** Follows the waiting conversations. It is a component, because only signed-in users may follow them. */
function WaitingStream() {
  useWaitingStream()
  return null
}

/** Links to the checklist while it has incomplete steps. */
function GetStartedLink({ onFollow }: { readonly onFollow?: () => void }) {
  const [{ isComplete = true }] = useStoredFirstRun()
  if (isComplete) return null
  return (
    <Link to="/get-started" className="navigation-link get-started-link" onClick={onFollow}>
      <Icon name="play" size={16} />
      {t('shell.getStarted')}
    </Link>
  )
}

const listSchemes = (): readonly { scheme: MantineColorScheme; label: string; icon: IconName }[] => [
  { scheme: 'light', label: t('shell.light'), icon: 'sun' },
  { scheme: 'dark', label: t('shell.dark'), icon: 'moon' },
  { scheme: 'auto', label: t('shell.system'), icon: 'system' },
]

function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const choices = listSchemes()
  const current = choices.find(({ scheme }) => scheme === colorScheme)
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t('shell.themeNow', { theme: current?.label ?? '' })}
        >
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
  const notice = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (online || notice.current === null) return
    return reserveSpace(notice.current)
  }, [online])
  if (online) return null
  return (
    <Group
      ref={notice}
      role="status"
      gap="xs"
      justify="center"
      wrap="nowrap"
      p={6}
      className="offline-notice"
    >
      <Icon name="offline" size={16} />
      <Text size="sm">{t('shell.offline')}</Text>
    </Group>
  )
}

/** Shortens the page and the navigation, so that a notice at the bottom of the window does not cover them. */
function reserveSpace(notice: HTMLElement): () => void {
  const { style } = document.documentElement
  const observer = new ResizeObserver(() =>
    style.setProperty('--app-shell-footer-offset', `${notice.offsetHeight}px`),
  )
  observer.observe(notice)
  return () => {
    observer.disconnect()
    style.removeProperty('--app-shell-footer-offset')
  }
}
