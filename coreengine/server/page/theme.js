// Before anything is drawn: the colours that were chosen last time. Without a choice they are those of the system.
(function () {
  try {
    const theme = localStorage.getItem('reeve.theme')
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme
  } catch {}
})()
