// Browsers do not let a page read its neighbours on disk, so the search shows titles without excerpts there.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
